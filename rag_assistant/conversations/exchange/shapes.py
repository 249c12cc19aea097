"""Which of the known shapes an exported text has, and what is in it. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from rag_assistant.conversations.exchange.archive import is_archive, read_archive
from rag_assistant.conversations.exchange.chatgpt import is_chatgpt, read_chatgpt
from rag_assistant.conversations.exchange.librechat import is_librechat, read_librechat
from rag_assistant.conversations.exchange.open_webui import is_open_webui, read_open_webui
from rag_assistant.conversations.exchange.trees import MessageTree, conversations_of
from rag_assistant.records.archive import ArchivedDocument, WholeConversation
from rag_assistant.records.errors import InvalidRequest, MalformedBody
from rag_assistant.records.validation import shown, storable

READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], MessageTree]], ...] = (
    (is_chatgpt, read_chatgpt),
    (is_open_webui, read_open_webui),
    (is_librechat, read_librechat),
)
ALLOWED = (
    "It must be conversations.json of ChatGPT or the zip file it came in, an export of Open WebUI or LibreChat as "
    'JSON, or an archive made by "rag-assistant export".'
)
NOT_RECURSIVE = "From LibreChat, export long conversations without the recursive form."
MAX_NAMED_FIELDS = 6


class Export(Struct, frozen=True):
    """What is in an exported file; ``unreadable`` counts entries of a list that are no conversations."""

    conversations: tuple[WholeConversation, ...]
    documents: tuple[ArchivedDocument, ...] = ()
    unreadable: int = 0


def read_texts(texts: Sequence[str]) -> Export:
    """Return what is in the texts that are one export together.

    Raises MalformedBody, and InvalidRequest if they have none of the known shapes.
    """
    if len(texts) == 1 and is_archive(texts[0]):
        records = list(read_archive(texts[0]))
        return Export(
            tuple(one for one in records if isinstance(one, WholeConversation)),
            tuple(one for one in records if isinstance(one, ArchivedDocument)),
        )
    contents = [_parsed(text) for text in texts]
    entries = [entry for content in contents for entry in (content if isinstance(content, list) else [content])]
    made: list[WholeConversation] = []
    unreadable = 0
    for entry in entries:
        read = next((reader for fits, reader in READERS if fits(entry)), None)
        if read is None:
            unreadable += 1
        else:
            made += conversations_of(read(entry), len(made) + 1)
    if unreadable == len(entries):
        raise InvalidRequest(f"The file holds {_in_words(contents[0])}. {ALLOWED}")
    return Export(tuple(made), unreadable=unreadable)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise MalformedBody(f"The file is nested too deeply. {NOT_RECURSIVE}") from error
    except ValueError as error:
        raise MalformedBody(f"The file is not JSON ({error}). {ALLOWED}") from error


def _in_words(content: Any) -> str:
    if isinstance(content, list):
        return f"a list that begins with {_in_words(content[0])}" if content else "an empty list"
    if isinstance(content, dict):
        names = ", ".join(f'"{storable(name[:40])}"' for name in list(content)[:MAX_NAMED_FIELDS])
        return f"an object with the fields {names}" if names else "an empty object"
    return shown(content)
