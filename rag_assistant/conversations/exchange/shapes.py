"""Recognise the format of an exported text, and read it. Pure."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from rag_assistant.conversations.exchange.archive import ALLOWED, is_archive, parsed, pieces_of, read_archive
from rag_assistant.conversations.exchange.products import PRODUCTS
from rag_assistant.conversations.exchange.trees import conversations_of
from rag_assistant.records.archive import ArchivedDocument, ArchivedNote, WholeConversation
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.records.validation import shown, storable_value

# Of a person, including branches.
MAX_CONVERSATIONS = 20_000
MAX_NAMED_FIELDS = 6


class Export(Struct, frozen=True):
    """The content of an exported file.

    Of its list entries, ``unreadable`` aren't conversations, and ``mended`` had characters that no database stores.
    """

    conversations: Iterable[WholeConversation]
    documents: tuple[ArchivedDocument, ...] = ()
    unreadable: int = 0
    notes: tuple[ArchivedNote, ...] = ()
    mended: int = 0


def read_texts(texts: Sequence[bytes], max_conversations: int = MAX_CONVERSATIONS) -> Export:
    """Return the content of the texts of one export, with up to ``max_conversations``.

    Raises MalformedBody, and InvalidRequest for an unknown format or too much content.
    """
    if len(texts) == 1 and is_archive(texts[0]):
        records = list(read_archive(texts[0]))
        archived = tuple(one for one in records if isinstance(one, WholeConversation))
        _refuse_more(len(archived), max_conversations)
        documents = tuple(one for one in records if isinstance(one, ArchivedDocument))
        return Export(archived, documents, notes=tuple(one for one in records if isinstance(one, ArchivedNote)))
    conversations: list[WholeConversation] = []
    first_unread, unreadable, entries, mended = "an empty list", 0, 0, 0
    for piece in chain.from_iterable(map(pieces_of, texts)):
        entries += 1
        entry = parsed(piece)
        if b"\\u" in piece and (whole := storable_value(entry)) != entry:
            entry = whole
            mended += 1
        read = next((reader for fits, reader in PRODUCTS if fits(entry)), None)
        if read is None:
            first_unread = first_unread if unreadable else _in_words(entry)
            unreadable += 1
        else:
            conversations += conversations_of(read(entry), len(conversations) + 1)
        _refuse_more(len(conversations), max_conversations)
    if unreadable == entries:
        in_list = "a list that begins with " if entries and texts[0].lstrip().startswith(b"[") else ""
        raise InvalidRequest(f"The file holds {in_list}{first_unread}. {ALLOWED}")
    return Export(tuple(conversations), unreadable=unreadable, mended=mended)


def _refuse_more(count: int, max_conversations: int) -> None:
    if count > max_conversations:
        raise InvalidRequest(f"The file has more than {max_conversations:,} conversations, the most allowed.")


def _in_words(content: Any) -> str:
    if isinstance(content, list):
        return "a list"
    if isinstance(content, dict):
        names = ", ".join(f'"{name[:40]}"' for name in list(content)[:MAX_NAMED_FIELDS])
        return f"an object with the fields {names}" if names else "an empty object"
    return shown(content)
