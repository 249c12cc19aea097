"""How other libraries trim the same conversations: one small adapter a library, run by ``python -m bench.history``."""
