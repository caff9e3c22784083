"""Git worktrees of the sides, and their builds. Never touches the user's checkout, index or refs.

``repository`` answers what a rev is; ``worktree`` gives a side a folder of its own. All that
runs git is imported where it is used, so that importing this package costs nothing.
"""
