"""The receipt of an answer as a page, and its request as a curl command."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from flask import Blueprint, Response, make_response, render_template, url_for
from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.history import TOKENS_PER_ATTACHMENT, count_message, estimate_tokens, length_of_system_block
from rag_assistant.llm.client import OPENAI_BASE_URL
from rag_assistant.records import MAX_INT32, Message, Turn, pictures_in, text_in
from rag_assistant.records.errors import ReceiptNotFound
from rag_assistant.records.views import messages_sent
from rag_assistant.web.languages import gettext
from rag_assistant.web.pages.conversation import TURNS_SHOWN
from rag_assistant.web.pages.frame import drawer, frame
from rag_assistant.web.request_parsing import whole_number
from rag_assistant.web.routing import READ, services

blueprint = Blueprint("receipt_pages", __name__)


BESIDE = re.compile(
    r"\A(?:(?P<notes>[^\n]*\n<notes>\n.*?\n</notes>)\n\n)?"
    r"(?:(?P<recalled>[^\n]*\n<earlier>\n.*?\n</earlier>)\n\n)?(?:(?P<passages><passages>\n.*?\n</passages>)\n\n)?",
    re.DOTALL,
)
BESIDE_TITLES = {
    "notes": "Notes", "recalled": "Recalled from left-out turns", "passages": "Passages from your documents",
}  # fmt: skip
# Which parts each figure of the answer counts.
FIGURES = {
    "system": ("system", "notice"),
    "summary": ("summary",),
    "history": ("history",),
    "passages": ("notes", "recalled", "passages"),
    "question": ("question",),
}
# Earlier turns on a page.
PARTS_SHOWN = 100
CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")


@blueprint.get("/turns/<int:turn_id>/receipt", policy=READ)
def receipt(turn_id: int) -> str:
    """Show what the model saw for a turn, part by part, and what was left out."""
    turn = services().turns.get(turn_id)
    body = services().turns.receipt(turn_id)
    parts, earlier = _page(parts_of(turn, body) if body else [], whole_number("before", None, 1, MAX_INT32))
    return render_template(
        drawer("receipt.html"),
        turn=turn,
        receipt=body,
        heading=gettext("Passages used") if body and body.get("quotes") else gettext("What the model saw"),
        parts=parts,
        earlier_turns=earlier,
        address_of_turn=lambda number: _address_of(turn, number),
        back=_address_of(turn, turn.number),
        **frame(None),
    )


@blueprint.get("/turns/<int:turn_id>/receipt.sh", policy=READ)
def curl(turn_id: int) -> Response:
    """Return the last request of a turn as a shell command."""
    services().turns.get(turn_id)
    body: dict[str, Any] | None = services().turns.receipt(turn_id)
    if body is None or "request" not in body:
        raise ReceiptNotFound(turn_id)
    response = make_response(as_curl(body["request"], services().settings.current.openai_base_url or OPENAI_BASE_URL))
    response.mimetype = "text/plain"
    return response


def _address_of(turn: Turn, number: int) -> str:
    newest = services().conversations.get(turn.conversation_id).turns
    before = number + 1 if number <= newest - TURNS_SHOWN else None
    return url_for("pages.conversation", conversation_id=turn.conversation_id, before=before, _anchor=f"turn-{number}")


class Part(Struct, frozen=True):
    """A part of a request: its name, our estimate of its tokens, and its messages as role and text.

    ``turn`` is the number of its turn, if it is one.
    """

    kind: str
    title: str
    tokens: int
    texts: tuple[tuple[str, str], ...]
    turn: int | None = None


@blueprint.app_template_filter()
def parts_of(turn: Turn, body: Mapping[str, Any]) -> list[Part]:
    """Return the parts of a turn's last request in the order in which they were sent."""
    messages = messages_sent(dict(body))
    first = length_of_system_block(messages)
    running = max(first, body["prefix_messages"])
    before = messages[first:running]
    summarised = 2 if turn.history and turn.history.get("summary_sent") else 0
    parts = [
        *[_part("system", "Instructions", [message]) for message in messages[: min(first, 1)]],
        *[_part("notice", "Notice about left-out turns", [message]) for message in messages[1:first]],
        *([_part("summary", "Summary of older turns", before[:summarised])] if before[:summarised] else []),
        *_past_turns(before[summarised:], body.get("kept_turns") or ()),
        *_running_turn(messages[running:]),
    ]
    # The figures include what has since been erased.
    return parts if body.get("erased_turns") else _corrected(parts, (turn.history or {}).get("tokens") or {})


def _page(parts: Sequence[Part], before: int | None) -> tuple[list[Part], int | None]:
    """Return the parts to show, with some of the earlier turns, and the cursor of those before them."""
    past = [part for part in parts if part.kind == "history"]
    start = parts.index(past[0]) if past else 0
    end = min(before or len(past), len(past))
    first = max(0, end - PARTS_SHOWN)
    return [*parts[:start], *past[first:end], *parts[start + len(past) :]], first or None


def as_curl(request: Mapping[str, Any], base_url: str) -> str:
    """Return a shell command that sends a request again; the key is read from the environment.

    The body is a here-document that nothing in it can end: it is one line of plain ASCII.
    """
    url = CREDENTIALS.sub("", base_url.rstrip("/")) + "/chat/completions"
    quoted = "'" + url.replace("'", "'\\''") + "'"
    return (
        f"curl {quoted} \\\n"
        '  -H "Authorization: Bearer $OPENAI_API_KEY" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  --data-binary @- <<'JSON'\n{json.dumps(request)}\nJSON\n"
    )


def _corrected(parts: Sequence[Part], tokens: Mapping[str, Any]) -> list[Part]:
    """Return the parts with tokens that add up to the answer's figures, which are corrected for the model."""
    corrected = list(parts)
    for figure, kinds in FIGURES.items():
        counted = sum(part.tokens for part in parts if part.kind in kinds)
        ratio = tokens[figure] / counted if tokens.get(figure) and counted else 1
        for n, part in enumerate(parts):
            if part.kind in kinds:
                corrected[n] = replace(part, tokens=round(part.tokens * ratio))
    return corrected


def _past_turns(messages: Sequence[Message], kept_turns: Sequence[int]) -> list[Part]:
    """Return the earlier turns, numbered where that is certain."""
    groups: list[list[Message]] = []
    for message in messages:
        begins = message["role"] == "user" and not (groups and groups[-1][-1]["role"] == "user")
        if begins or not groups:
            groups.append([])
        groups[-1].append(message)
    numbers: Sequence[int | None] = kept_turns if len(kept_turns) == len(groups) else [None] * len(groups)
    return [
        _part("history", f"Turn {number}" if number else "Earlier turn", group, number)
        for number, group in zip(numbers, groups, strict=True)
    ]


def _running_turn(messages: Sequence[Message]) -> list[Part]:
    """Return the question, apart from what accompanies it, and the tool calls of its answer."""
    if not messages:
        return []
    first, steps = messages[0], messages[1:]
    text = text_in(first)
    beside = BESIDE.match(text)
    groups = beside.groupdict() if beside else {}
    parts = [
        _text_part(kind, BESIDE_TITLES[kind], first["role"], beside_text)
        for kind, beside_text in groups.items()
        if beside_text
    ]
    rest = text[beside.end() :] if beside else text
    question = _text_part("question", "Question", first["role"], rest)
    if pictures := len(pictures_in(first)):
        texts = (*question.texts, (first["role"], f"{pictures} {'picture' if pictures == 1 else 'pictures'}"))
        question = replace(question, tokens=question.tokens + pictures * TOKENS_PER_ATTACHMENT, texts=texts)
    parts.append(question)
    if steps:
        parts.append(_part("steps", "Tool calls for this answer", steps))
    return parts


def _part(kind: str, title: str, messages: Sequence[Message], turn: int | None = None) -> Part:
    tokens = sum(count_message(message, estimate_tokens) for message in messages)
    texts = []
    for message in messages:
        called = [one["function"] for one in message.get("tool_calls") or ()]
        lines = [text_in(message), *(f"{one['name']} {one['arguments']}" for one in called)]
        texts.append((message["role"], "\n".join(filter(None, lines))))
    return Part(kind, title, tokens, tuple(texts), turn)


def _text_part(kind: str, title: str, role: str, text: str) -> Part:
    return Part(kind, title, estimate_tokens(text), ((role, text),))
