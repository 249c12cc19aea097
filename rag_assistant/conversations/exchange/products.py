"""Recognise the format of an exported text, and read it: trees of messages of other products, with branches. Pure.

ChatGPT's is a list of conversations, each a tree of nodes (``mapping``). Open WebUI's is a list of chats, each with its
tree in ``chat.history``.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby, zip_longest
from typing import Any, Literal

from msgspec import Struct

from rag_assistant.conversations.exchange.archive import ALLOWED, is_archive, parsed, pieces_of, read_archive
from rag_assistant.records import UNTITLED
from rag_assistant.records.archive import ArchivedDocument, ArchivedNote, WholeAnswer, WholeConversation, WholeTurn
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.records.validation import shown, storable_value, without_between

# Branches repeat earlier messages: the limit for one conversation with all its branches.
MAX_TURNS = 50_000
MAX_CHARS = 50_000_000
# Units of timestamps, from seconds to nanoseconds, in seconds since 1970: up to the year 2286.
MAX_SECONDS = 10**10
SMALLER_UNITS = 3


class TreeMessage(Struct, frozen=True):
    """A message of a person or a model; a ``hidden`` one is only a node."""

    id: str
    parent: str | None
    role: Literal["user", "assistant", "hidden"]
    text: str = ""
    at: datetime | None = None
    model: str | None = None


def message_of(name: str, parent: Any, role: Any, text: str, at: Any, model: Any) -> TreeMessage:
    """Return a message with a product's values; one without text, or of neither a person nor a model, is hidden."""
    parent = parent if isinstance(parent, str) else None
    if role not in ("user", "assistant") or not text:
        return TreeMessage(name, parent, "hidden")
    return TreeMessage(name, parent, role, text, moment(at), text_in(model) or None if role == "assistant" else None)


class MessageTree(Struct, frozen=True):
    """A conversation of another product; ``current`` is the last message of the shown branch."""

    product: str
    id: str
    title: str
    messages: Mapping[str, TreeMessage]
    current: str | None
    created_at: datetime | None
    updated_at: datetime | None
    pinned: bool = False
    archived: bool = False


def conversations_of(tree: MessageTree, first_id: int) -> list[WholeConversation]:
    """Return the shown conversation, then one for each other leaf of its tree, as branches of it.

    They have ids from ``first_id`` on; branches without an answer are left out. Raises InvalidRequest if it is too
    much.
    """
    conversations: list[WholeConversation] = []
    # The conversation in which a turn that ends with a message occurred first, with the same earlier turns.
    first_in: dict[str, WholeConversation] = {}
    turns_left, chars_left = MAX_TURNS, MAX_CHARS
    for path in _paths(tree):
        messages = [tree.messages[one] for one in path if tree.messages[one].role != "hidden"]
        turns, ends = _turns(messages, tree)
        turns_left -= len(turns)
        chars_left -= sum(len(one.text) for one in messages)
        if turns_left < 0 or chars_left < 0:
            raise InvalidRequest(
                f'The conversation "{tree.title}" has more than {MAX_TURNS} turns or {MAX_CHARS} characters in all its '
                "branches together, the most that are imported."
            )
        shared = next((count for count in range(len(ends), 0, -1) if ends[count - 1] in first_in), 0)
        if turns and shared < len(turns):
            origin = first_in[ends[shared - 1]] if shared else conversations[0] if conversations else None
            conversations.append(_conversation(tree, turns, ends[-1], first_id + len(conversations), origin, shared))
            first_in |= dict.fromkeys(ends[shared:], conversations[-1])
    return conversations


def moment(value: Any) -> datetime | None:
    """Return a product's timestamp, a number since 1970, ``None`` if it is none."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = float(value)
            for _ in range(SMALLER_UNITS):
                seconds = seconds / 1000 if seconds > MAX_SECONDS else seconds
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def text_in(value: Any) -> str:
    """Return a text, empty if the value isn't one."""
    return value if isinstance(value, str) else ""


def _paths(tree: MessageTree) -> Iterator[list[str]]:
    """Yield the path from the root to each leaf of the tree: first the shown one."""
    parents = {one.parent for one in tree.messages.values()}
    ends = [one for one in tree.messages if one not in parents]
    current = tree.current if tree.current in tree.messages else ends[-1] if ends else None
    walked = 0
    for end in dict.fromkeys([current, *ends] if current else ends):
        path: dict[str, None] = {}
        at: str | None = end
        while at is not None and at in tree.messages and at not in path:
            path[at] = None
            at = tree.messages[at].parent
        walked += len(path)
        if walked > 4 * MAX_TURNS:
            raise InvalidRequest(f'The conversation "{tree.title}" has more branches than can be imported.')
        yield list(reversed(path))


def _turns(path: Sequence[TreeMessage], tree: MessageTree) -> tuple[list[WholeTurn], list[str]]:
    """Return a path as turns, each a question and what the model said up to the next, and the last message of each."""
    turns: list[WholeTurn] = []
    ends: list[str] = []
    spoken = [list(messages) for _, messages in groupby(path, lambda one: one.role)]
    if spoken and spoken[0][0].role == "assistant":
        spoken.insert(0, [])
    for question, answer in zip_longest(spoken[::2], spoken[1::2], fillvalue=list[TreeMessage]()):
        last = turns[-1].answer.finished_at if turns else None
        turns.append(_turn(question, answer, tree, last or tree.created_at))
        ends.append((answer or question)[-1].id)
    return (turns, ends) if any(turn.question or turn.answer.messages for turn in turns) else ([], [])


def _turn(
    question: Sequence[TreeMessage], answer: Sequence[TreeMessage], tree: MessageTree, before: datetime | None
) -> WholeTurn:
    asked_at = next((one.at for one in (*question, *answer) if one.at), before) or datetime.fromtimestamp(0, UTC)
    finished_at = next((one.at for one in reversed(answer) if one.at), asked_at)
    text = "\n\n".join(one.text for one in answer if one.text)
    return WholeTurn(
        question="\n\n".join(one.text for one in question if one.text),
        answer=WholeAnswer(
            messages=({"role": "assistant", "content": text},) if text else (),
            status="completed" if text else "failed",
            finished_at=finished_at,
            model=next((one.model for one in reversed(answer) if one.model), None),
            notes=(f"Imported from {tree.product}.",),
            error_type=None if text else "AnswerInterrupted",
            error_message=None if text else f"There is no answer in the file that {tree.product} exported.",
        ),
        created_at=asked_at,
    )


def _conversation(
    tree: MessageTree, turns: Sequence[WholeTurn], end: str, own_id: int, origin: WholeConversation | None, shared: int
) -> WholeConversation:
    """Return the record of a path; with an ``origin`` a branch of it, after the turns they share."""
    created_at = tree.created_at or turns[0].created_at
    updated_at = turns[-1].answer.finished_at or created_at
    identity = "\0".join((tree.product, tree.id, end))
    return WholeConversation(
        id=own_id,
        title=" ".join(tree.title.split()) or " ".join(turns[0].question.split())[:80] or UNTITLED,
        created_at=created_at,
        updated_at=updated_at if origin else max(updated_at, tree.updated_at or updated_at),
        turns=tuple(turns),
        key=f"import:{hashlib.sha256(identity.encode()).hexdigest()}",
        branched_from=(origin.id, shared + 1) if origin else None,
        pinned=tree.pinned and origin is None,
        archived=tree.archived,
    )


# Of a person, including branches.
MAX_CONVERSATIONS = 20_000
MAX_NAMED_FIELDS = 6
# Markup for a source, or a name with a link, between private use characters.
DRAWN = re.compile(
    "\\s?\ue200(?P<kind>[^\ue200-\ue202]*+)(?P<rest>[^\ue200\ue201]*)\ue201|\u3010[\\d:]+\u2020[^\u3011\\n]{0,200}\u3011"
)
NAMED = re.compile(r'\["[^"]*", ?"([^"]*)"')


def read_chatgpt(one: dict[str, Any]) -> MessageTree:
    """Return a conversation without what ChatGPT doesn't show (instructions, tools, reasoning)."""
    model = text_in(one.get("default_model_slug")) or None
    nodes = {name: node for name, node in one["mapping"].items() if isinstance(node, dict)}
    return MessageTree(
        product="ChatGPT",
        id=text_in(one.get("conversation_id") or one.get("id")) or f"{one.get('title')}, {one.get('create_time')}",
        title=text_in(one.get("title")),
        messages={name: _chatgpt_message(name, node, model) for name, node in nodes.items()},
        current=one.get("current_node") if isinstance(one.get("current_node"), str) else None,
        created_at=moment(one.get("create_time")),
        updated_at=moment(one.get("update_time")),
        pinned=one.get("is_starred") is True,
        archived=one.get("is_archived") is True,
    )


def _chatgpt_message(name: str, node: dict[str, Any], default_model: str | None) -> TreeMessage:
    message = _dict(node.get("message"))
    metadata, role = _dict(message.get("metadata")), _dict(message.get("author")).get("role")
    for_a_tool = message.get("recipient") not in (None, "all") or message.get("channel") in ("analysis", "commentary")
    if for_a_tool or metadata.get("is_visually_hidden_from_conversation"):
        role = None
    text = DRAWN.sub(_name_in, "\n\n".join(_chatgpt_texts(message.get("content")))).strip() if role else ""
    model = text_in(metadata.get("model_slug")) or default_model
    return message_of(name, node.get("parent"), role, text, message.get("create_time"), model)


def _name_in(drawn: re.Match[str]) -> str:
    """Return the shown name, nothing for a source, whose target isn't in the export."""
    named = NAMED.search(drawn["rest"] or "") if drawn["kind"] == "entity" else None
    return f" {named[1]}" if named else ""


def _chatgpt_texts(content: Any) -> Iterator[str]:
    """Yield the texts of a message; a picture or file is named in brackets."""
    if not isinstance(content, dict) or content.get("content_type") not in ("text", "multimodal_text", "code"):
        return
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        if isinstance(part, str) and part.strip():
            yield text_in(part)
        elif isinstance(part, dict):
            kind = text_in(part.get("content_type"))
            yield text_in(part.get("text")) or f"[{kind.replace('_', ' ') or 'attachment'}]"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# What the page folds: reasoning and tool calls, written into the answer.
FOLDED = re.compile(r'<details type="(?:reasoning|tool_calls|code_interpreter)"')
FOLDED_END = re.compile(r"</details>\s*")


def read_open_webui(one: dict[str, Any]) -> MessageTree:
    """Return a chat without reasoning and tool calls, which are part of its answers there."""
    inner = _inner(one)
    current = inner["history"].get("currentId")
    nodes = {name: node for name, node in _open_webui_messages(one).items() if isinstance(node, dict)}
    return MessageTree(
        product="Open WebUI",
        id=text_in(one.get("id")) or f"{one.get('title')}, {one.get('created_at')}",
        title=text_in(one.get("title")) or text_in(inner.get("title")),
        messages={
            name: message_of(
                name,
                node.get("parentId"),
                node.get("role"),
                without_between(text_in(node.get("content")), FOLDED, FOLDED_END).strip(),
                node.get("timestamp"),
                node.get("model"),
            )
            for name, node in nodes.items()
        },
        current=current if isinstance(current, str) else None,
        created_at=moment(one.get("created_at")) or moment(inner.get("timestamp")),
        updated_at=moment(one.get("updated_at")),
        pinned=one.get("pinned") is True,
        archived=one.get("archived") is True,
    )


def _inner(one: dict[str, Any]) -> dict[str, Any]:
    """Return the chat inside its record; older exports had it alone."""
    return one["chat"] if isinstance(one.get("chat"), dict) else one


def _open_webui_messages(one: dict[str, Any]) -> Any:
    return _dict(_inner(one).get("history")).get("messages")


# Of each product, where a conversation has its messages, and how it is read.
PRODUCTS: tuple[tuple[Callable[[dict[str, Any]], Any], Callable[[dict[str, Any]], MessageTree]], ...] = (
    (lambda one: one.get("mapping"), read_chatgpt),
    (_open_webui_messages, read_open_webui),
)


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
    """Return the content of one export's texts, up to ``max_conversations``. Raises MalformedBody, InvalidRequest."""
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
        tried = PRODUCTS if isinstance(entry, dict) else ()
        read = next((reader for messages_of, reader in tried if isinstance(messages_of(entry), dict)), None)
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
