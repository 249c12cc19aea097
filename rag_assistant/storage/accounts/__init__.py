"""People, what they are known by, and what was done to accounts, in SQL."""
