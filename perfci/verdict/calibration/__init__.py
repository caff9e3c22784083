"""PURE: identical sides to what the machine sees, what it promises, and what to configure.

``noise`` says how much identical sides differ, ``promise`` what a session can detect and whether it
did, ``suggestions`` which settings would detect more.
"""
