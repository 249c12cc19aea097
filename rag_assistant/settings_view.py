"""Every setting as a person reads it: its value, where that comes from, and what may stand there. Pure."""
