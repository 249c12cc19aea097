"""Accounts and signing in: passwords, sessions, tokens, one-time links, and rate limits."""
