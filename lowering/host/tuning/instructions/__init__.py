"""Instructions."""
