"""Conversations in and out: what other products export, and everything of our own in one file."""
