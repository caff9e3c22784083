"""The ranks of ``perfci.distributed``: children of a worker, or started by a launcher on any node.

Their worker leads them by a connection each, whatever started them. No figure is made here.
"""
