"""Third-party clients talking to /v1: what each was asked to do and what it got (transcripts.md)."""
