"""How each kind of file is read. ``loaders.py`` chooses; all of it runs in the process of ``extract.py``."""
