"""A report as one HTML page that needs no other file and asks no host. Pure.

Its looks and its drawings are the trend site's (render/site/).
"""
