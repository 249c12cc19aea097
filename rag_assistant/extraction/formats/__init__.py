"""The readers for each kind of file, chosen by ``loaders.py``; they run in the process of ``extract.py``."""
