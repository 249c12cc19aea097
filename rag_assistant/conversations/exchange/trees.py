"""Message trees of chat products, as conversations with branches. Pure."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, zip_longest
from typing import Any, Literal

from msgspec import Struct

from rag_assistant.records import UNTITLED
from rag_assistant.records.archive import WholeAnswer, WholeConversation, WholeTurn
from rag_assistant.records.errors import InvalidRequest

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
    """Return a product's timestamp, a number since 1970 or ISO text, ``None`` if it is neither."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
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
