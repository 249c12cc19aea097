"""How it is served for real: gunicorn, its log, and threads that no slow client can take."""
