"""How other libraries trim the same conversations: a small adapter for each, run by ``python -m bench.history``."""
