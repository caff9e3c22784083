"""The code that ran: was it the side's own, and is it the same on both sides?

Workers and their children record what they import, load, open and start (``worker.hook``). This
package attributes each recorded event to the place of its file: the side's tree, the user's
checkout, an installed copy and so on.
"""
