"""Everything that leaves the machine: GitHub and webhooks. Nothing here decides."""
