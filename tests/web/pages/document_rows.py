"""A document to look for on pages, and the names that a list shows."""

import re

FACT = "The lighthouse keeper feeds seventeen geese."


def names_on(page: str) -> list[str]:
    return re.findall(r'<a id="document-\d+"[^>]*>([^<]*)</a>', page)
