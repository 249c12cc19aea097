"""Passwords, throttling and accounts."""
