"""The server: waitress, an orderly shutdown, and request logging."""
