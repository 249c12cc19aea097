"""Accounts, credentials and the audit log, in SQL."""
