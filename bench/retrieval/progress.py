"""Say on the screen what goes on, beside the tables, which may go into a file."""

import sys


def say(text: str) -> None:
    """Print what is done now."""
    print(text, file=sys.stderr, flush=True)
