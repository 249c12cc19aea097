"""The parameters of addresses and headers, by the names under which routes declare that they take them."""

from __future__ import annotations

from typing import Any

from rag_assistant.conversations.exchange.export import FORMATS
from rag_assistant.records import DOCUMENT_STATES, MAX_INT32
from rag_assistant.web.request_parsing import MAX_KEY_CHARS

Schema = dict[str, Any]

ID: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_INT32}
FLAG: Schema = {"type": "integer", "enum": [0, 1]}
TEXT: Schema = {"type": "string"}
QUERY: dict[str, tuple[Schema, str]] = {
    "limit": ({"type": "integer", "minimum": 1, "maximum": 200, "default": 50}, "How many items a page has."),
    "cursor": (TEXT, "Where the page begins: next_cursor of the page before."),
    "before": (TEXT, "The former name of cursor."),
    "q": (TEXT, "Words to look for."),
    "pinned": (FLAG, "1: those that are pinned alone; 0: the others."),
    "deleted": (FLAG, "1: those in the trash."),
    "permanently": (FLAG, "1: yes, erase it. There is no way back."),
    "html": (FLAG, "1: tokens carry HTML, as the page draws them."),
    "tag": ({"type": "array", "items": TEXT}, "Only documents with one of these tags."),
    "document_id": ({"type": "array", "items": ID}, "Only these documents."),
    "conversation_id": (ID, "Search as for a follow-up question in this conversation."),
    "state": ({"type": "string", "enum": list(DOCUMENT_STATES)}, "Only documents in this state."),
    "format": ({"type": "string", "enum": list(FORMATS)}, "The format of the file."),
    "max_history_turns": (
        {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MAX_INT32}, {"enum": ["all", "null"]}]},
        "The window to try.",
    ),
    "files": (FLAG, "1: with the files of the documents."),
    "link": (TEXT, "What stands behind link= in the address of a shared conversation."),
    "strategy": ({"type": "string", "enum": ["window", "smart"]}, "The strategy to try."),
    "include": (TEXT, "Without effect."),
    "include_obfuscation": (TEXT, "Without effect."),
    "stream": (TEXT, "Without effect."),
    "starting_after": (TEXT, "Without effect."),
    "after": (TEXT, "Without effect."),
    "order": (TEXT, "Without effect."),
}
HEADERS: dict[str, tuple[Schema, str]] = {
    "Idempotency-Key": (
        {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS},
        "Sent twice with the same key, a question is asked once.",
    ),
    "Last-Event-ID": ({"type": "string"}, "The position in the answer from which on it is followed."),
    "X-Conversation-Id": (
        {"type": "string", "pattern": "^([1-9][0-9]{0,8}|new)$"},
        "The stored conversation to go on with, or new.",
    ),
}
PATH_TEXT: dict[str, Schema] = {"name": TEXT, "response_id": TEXT}


def query_parameter(name: str, own: Schema | None = None) -> Schema:
    """Return a parameter of an address; ``own`` is the schema of one that is special there."""
    schema, description = QUERY[name]
    return {"name": name, "in": "query", "description": description, "schema": own or schema}


def header_parameter(name: str) -> Schema:
    """Return a header."""
    schema, description = HEADERS[name]
    return {"name": name, "in": "header", "description": description, "schema": schema}


def path_parameter(name: str) -> Schema:
    """Return a part of a path: an id, unless it is said to be a text."""
    return {"name": name, "in": "path", "required": True, "schema": PATH_TEXT.get(name, ID)}
