"""The CHILD process. It measures one case of one side and sends the result back on its own pipe.

It imports the standard library and torch only. It decides nothing: raw numbers go to the parent.
"""
