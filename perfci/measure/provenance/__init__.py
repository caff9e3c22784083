"""The code that ran: was it the side's own, and is it the same on both sides?

Workers and their children write down what they import, load, open and start (``worker.hook``).
Here each such event is attributed to a place, and a session's events are added up.
"""
