"""PURE: identical sides to what the machine sees, what it promises, and what to configure."""
