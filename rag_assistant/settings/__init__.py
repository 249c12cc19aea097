"""What may be configured, and the values in force now."""
