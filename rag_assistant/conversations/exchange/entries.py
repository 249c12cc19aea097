"""The entries of an exported JSON text, one at a time: each is measured before it is parsed. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Any

from rag_assistant.records.errors import InvalidRequest, MalformedBody

# A conversation of 25,000 messages has about a million values.
MAX_ENTRIES, MAX_VALUES, MAX_DEPTH = 100_000, 1_000_000, 500
# A string, possibly unterminated, or punctuation.
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)
QUOTE, COMMA, END, OPENING, CLOSING = ord('"'), ord(","), ord("]"), frozenset(b"[{"), frozenset(b"]}")
ALLOWED = (
    "It must be conversations.json of ChatGPT or the zip file it came in, an export of Open WebUI or LibreChat as "
    'JSON, or an archive made by "rag-assistant export".'
)
NOT_RECURSIVE = "From LibreChat, export long conversations without the recursive form."


def pieces_of(content: bytes) -> Iterator[bytes]:
    """Yield the text of each entry of a list, or of a single other value.

    Raises MalformedBody, or InvalidRequest before yielding one that is too large.
    """
    text = content.strip()
    is_list = text[:1] == b"["
    depth = values = entries = begin = 0
    for token in TOKEN.finditer(text):
        at = token.start()
        sign = text[at]
        if sign == QUOTE:
            continue
        if sign in OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                raise MalformedBody(f"The file is nested too deeply. {NOT_RECURSIVE}")
        elif sign in CLOSING:
            depth -= 1
        values += sign not in CLOSING
        if values > MAX_VALUES:
            raise InvalidRequest(f"A conversation in the file has more than {MAX_VALUES:,} values, the most allowed.")
        if is_list and depth == 1 and sign == COMMA:
            entries += 1
            if entries > MAX_ENTRIES:
                raise InvalidRequest(f"The file has more than {MAX_ENTRIES:,} entries, the most allowed.")
            yield text[begin + 1 : at]
            begin, values = at, 0
        elif is_list and depth == 0:
            if at + 1 < len(text) or sign != END:
                break
            if entries or text[begin + 1 : at].strip():
                yield text[begin + 1 : at]
            return
    yield text  # An unterminated list.


def parsed(content: bytes) -> Any:
    """Parse a value. Raises MalformedBody."""
    try:
        return json.loads(content.decode())
    except RecursionError as error:
        raise MalformedBody(f"The file is nested too deeply. {NOT_RECURSIVE}") from error
    except UnicodeDecodeError as error:
        raise MalformedBody(f"The file is not UTF-8 text. {ALLOWED}") from error
    except ValueError as error:
        raise MalformedBody(f"The file is not JSON ({error}). {ALLOWED}") from error
