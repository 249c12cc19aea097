"""A self-hosted assistant that answers from your documents and tells the truth about what it remembers."""

__version__ = "1.0.0"
