"""TODO"""


def main() -> None:
    """TODO."""
