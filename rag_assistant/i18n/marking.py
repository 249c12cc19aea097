"""What marks a text to be translated where it is shown, not where it stands."""


def N_(text: str) -> str:  # noqa: N802 - As gettext's own manual names it.
    """Return the text as it is."""
    return text
