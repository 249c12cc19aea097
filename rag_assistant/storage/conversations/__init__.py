"""Conversations, turns and answers in SQL: each method is one short transaction."""
