"""What ran: was it the side's own code, and is it the same on both sides?

Workers and their children write down what they ran (``worker.hook``); here it is judged.
"""
