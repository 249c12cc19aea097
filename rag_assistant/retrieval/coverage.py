"""Decide whether a question needs all of a document, a table or a list. Pure. Results are in
bench/retrieval/README.md.
"""

import re
from collections.abc import Sequence

from rag_assistant.retrieval.table_answers import is_computed
from rag_assistant.retrieval.tables import LIST, Tables

# Asks for everything, whatever the subject.
EVERYTHING = re.compile(
    r"^\W*(?:please |can you |could you |bitte |kannst du )*"
    r"(?:list|count|enumerate|add up|summari[sz]e|compare|vergleiche?|fasse?|liste|zähle?)\b"
    r"|\b(?:name|list|tell|show|give)\b.{0,200}\b(?:all|every(?:one|thing)?)\b"
    r"|\b(?:what|which|who)\b.{0,200}\b(?:all (?:the|of|our|my|its|their)|every(?:one|thing))\b"
    r"|\b(?:overview|summary|add(?:ed|s)? up|sum of|überblick|zusammenfassung|summe)\b"
    r"|^\W*(?:résume|resume|总结|لخّص)",
    re.IGNORECASE,
)
# Asks for all rows of a table with a property.
WHICH = re.compile(
    r"\W*(?:(?:for|in|of|on|to|with) )?(?:which|who|name|what (?:\w+ ){0,3}(?:are|were|have)|welche\w*|wer|nenne|"
    r"was (?:sind|waren))\b",
    re.IGNORECASE,
)


def asks_for_everything(question: str) -> bool:
    """Return whether a question asks for all of a document, whatever that contains."""
    return EVERYTHING.search(question) is not None


def needs_everything(question: str, texts: Sequence[str]) -> bool:
    """Return whether a question needs all of something, such as of a table or list in ``texts``."""
    if asks_for_everything(question):
        return True
    return (is_computed(question) or WHICH.match(question) is not None) and any(
        LIST.search(text) or Tables(text).all for text in texts[:1]
    )
