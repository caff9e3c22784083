"""Git worktrees of the sides, and their builds. Never touches the user's checkout, index or refs.

``git`` resolves revisions. ``side_folders`` gives each side its folder: a worktree, or a build that
is kept for later runs. Importing this package itself loads no module.
"""
