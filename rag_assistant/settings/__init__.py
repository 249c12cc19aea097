"""The settings, and the values in force."""
