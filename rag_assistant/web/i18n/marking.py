"""What marks a text to be translated where it is shown, not where it stands."""


def N_(text: str) -> str:
    """Return the text as it is."""
    return text
