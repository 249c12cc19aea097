"""Who may come in: passwords, sessions, tokens and one-time links, and how often one may try."""
