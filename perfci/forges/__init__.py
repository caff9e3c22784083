"""Everything that leaves the machine: forges and webhooks. Nothing here decides."""
