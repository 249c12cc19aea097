"""The root of the tree."""


class AssistantError(Exception):
    """The root of the tree."""
