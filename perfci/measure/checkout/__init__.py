"""Git worktrees of the sides, and their builds. Never touches the user's checkout, index or refs.

``git`` says what a revision is. ``side_folders`` gives each side a folder, a worktree or a kept
build. Importing this package costs nothing.
"""
