"""Progress messages on the screen, apart from the tables, which may go into a file."""

import sys


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
