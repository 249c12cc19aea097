"""Documents, their chunks, words and vectors in SQL: each method is one short transaction."""
