"""What a person decides about turns, as plain forms: what the model sees of them, notes, and ratings; and in words."""

import json
import re
from collections.abc import Sequence
from typing import Any

from flask import Blueprint, Response, render_template, request

from rag_assistant.conversations.actions import HistoryView
from rag_assistant.conversations.commands import COMMANDS
from rag_assistant.conversations.compaction import operation_in_words
from rag_assistant.conversations.window import Rules, default_rules
from rag_assistant.history.figures import token_parts, tokens_sentence
from rag_assistant.history.words import REASONS, numbers_in_words, seen_by_model, turns_in_words, view_in_words
from rag_assistant.records import MAX_INT32, MAX_NOTE_CHARS, QUOTES, Turn, Unset
from rag_assistant.records.validation import storable_value
from rag_assistant.records.views import messages_sent
from rag_assistant.web.api import notes as notes_api
from rag_assistant.web.api import turns as turns_api
from rag_assistant.web.api.conversations import edit_summary
from rag_assistant.web.forms import as_form, to, to_its_turn, to_turn
from rag_assistant.web.languages import gettext, ngettext
from rag_assistant.web.markdown.render import plain_text
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.request_bodies import MAX_RIGHT_ANSWER_CHARS
from rag_assistant.web.request_parsing import whole_number
from rag_assistant.web.routing import ASK, READ, services

blueprint = Blueprint("history_pages", __name__)
RATINGS_SHOWN = 50
# The guide, which is in English, answers these: without a model it is quoted; a test checks that.
EXAMPLES = (
    "How many earlier turns does the model see?",
    "Which kinds of documents can I add?",
    "How large may a document be?",
)


blueprint.post("/conversations/<int:conversation_id>/summary", policy=ASK)(
    as_form(edit_summary, to("pages.conversation", "conversation_id", _anchor="summary"))
)
blueprint.post("/turns/<int:turn_id>/mark", policy=ASK)(
    as_form(turns_api.change_turn, lambda data: to_its_turn(data, at=data["turn"]))
)


@blueprint.post("/turns/<int:turn_id>/erase", policy=ASK)
def erase(turn_id: int) -> Response:
    """Erase a turn permanently, and show what is left of it."""
    left = services().eraser.erase(turn_id)
    return to_turn(left, at=left.number)


@blueprint.get("/notes", policy=READ)
def notes() -> str:
    """Show all notes and a form for a new one: with ``turn``, from a turn, or from the ``text`` selected in it."""
    turn_id = whole_number("turn", None, 1, MAX_INT32)
    turn = services().turns.get(turn_id) if turn_id is not None else None
    text = request.args.get("text", "").strip() or (turn.question if turn else "")
    return render_template(
        "notes.html",
        notes=services().notes.all(),
        turn=turn,
        text=text[:MAX_NOTE_CHARS],
        max_note_chars=MAX_NOTE_CHARS,
        **frame(None),
    )


to_notes = to("history_pages.notes")
blueprint.post("/notes", policy=ASK, endpoint="add_note")(as_form(notes_api.add, to_notes))
blueprint.post("/notes/<int:note_id>", policy=ASK, endpoint="change_note")(as_form(notes_api.change, to_notes))
blueprint.post("/notes/<int:note_id>/delete", policy=ASK, endpoint="delete_note")(as_form(notes_api.delete, to_notes))


@blueprint.get("/ratings", policy=READ)
def ratings() -> str:
    """Show the rated answers, newest first."""
    page = services().ratings.page(RATINGS_SHOWN + 1, whole_number("from", None, 1, MAX_INT32))
    older = page[RATINGS_SHOWN - 1].id if len(page) > RATINGS_SHOWN else None
    return render_template("ratings.html", rated=page[:RATINGS_SHOWN], older=older, **frame(None))


def rate(turn_id: int) -> Response:
    """Rate an answer, or remove its rating if nothing is chosen."""
    return turns_api.unrate(turn_id) if request.form.get("rating") == "" else turns_api.rate(turn_id)


blueprint.post("/turns/<int:turn_id>/rating", policy=ASK)(
    as_form(rate, lambda data: to_its_turn(data, at=data["turn"]))
)


@blueprint.app_template_test()
def unseen_in(turn: Turn, view: HistoryView) -> bool:
    """Return whether the model wouldn't see a turn with the next question."""
    return turn.status != "running" and turn.number not in view.fitted.receipt.kept_turns


@blueprint.app_template_filter()
def window_words(rules: Rules) -> str:
    """Return in a few words which earlier turns a conversation's settings send."""
    limit = rules.max_history_turns
    if limit == 0:
        return gettext("Memory: none")
    if rules.strategy == "smart":
        return gettext("Memory: smart")
    if limit is None:
        return gettext("Memory: all turns")
    return ngettext("Memory: last turn", "Memory: last {n} turns", limit)


@blueprint.app_template_filter()
def gauge_tokens(view: HistoryView) -> dict[str, Any]:
    """Return the tokens of the next request; for passages, as many as the last answer's."""
    tokens = view.tokens
    passages = services().history.last_passage_tokens(view.conversation.id)
    return tokens | {"passages": passages, "question": 0, "total": tokens["total"] + passages}


@blueprint.app_template_global()
def tokens_ratio() -> float:
    """Return the factor for our token estimates."""
    models = services().models
    return models.calibration.ratio(models.known_endpoint())


@blueprint.app_template_filter()
def in_words(run: dict[str, Any], receipt: dict[str, Any]) -> str:
    """Return the turns of a run in a receipt, in words."""
    return turns_in_words(run, receipt.get("kept_turns", ()), receipt["left_out"])


@blueprint.app_template_filter()
def in_short(arguments: str) -> str:
    """Return a tool call's arguments on one line; unchanged if they aren't an object."""
    try:
        given = storable_value(json.loads(arguments))  # Half a character can be neither shown nor sent.
        if isinstance(given, dict):
            return ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in given.items())
    except (ValueError, RecursionError):
        pass
    return arguments


@blueprint.app_template_filter()
def in_pieces(text: str, parts: Sequence[str]) -> list[tuple[str, bool]]:
    """Return a line of Markdown without markup as pieces, each with whether it is one of some parts of it."""
    text = plain_text(text)
    pattern = "|".join(map(re.escape, sorted(parts, key=len, reverse=True)))
    pieces = re.split(f"({pattern})", text) if pattern else [text]
    return [(piece, bool(n % 2)) for n, piece in enumerate(pieces)]


@blueprint.app_template_filter()
def in_blocks(text: str) -> list[str | list[str]]:
    """Return a command's result as paragraphs and lists: lines that begin with a dash are list items."""
    blocks: list[str | list[str]] = []
    for line in filter(str.strip, text.splitlines()):
        if not line.startswith("- "):
            blocks.append(line)
        elif blocks and isinstance(blocks[-1], list):
            blocks[-1].append(line[2:])
        else:
            blocks.append([line[2:]])
    return blocks


@blueprint.app_template_filter()
def rated_as(turn: Turn) -> str | None:
    """Return the rating of a turn's current answer: up, down, or none."""
    rating = turn.rating
    return rating.rating if rating is not None and rating.version == turn.version else None


blueprint.app_context_processor(lambda: {"commands": COMMANDS.values()})
# Quotes answer, without a model; the view begins below the first turn; the settings apply.
blueprint.add_app_template_test(lambda turn: turn.model == QUOTES, "quoted")
blueprint.add_app_template_test(lambda view: view is not None and view.has_horizon, "with_horizon")
blueprint.add_app_template_test(lambda value: isinstance(value, Unset), "unset")
blueprint.add_app_template_filter(lambda reason: REASONS.get(reason or "", reason or "left out"), "reason_words")
blueprint.add_app_template_filter(lambda conversation: services().corrections.of_summary(conversation), "summary_lines")
blueprint.add_app_template_filter(lambda one: default_rules(one, services().settings.current), "default_rules")
blueprint.add_app_template_filter(numbers_in_words, "turn_numbers")
for words in (seen_by_model, view_in_words, messages_sent, operation_in_words, token_parts, tokens_sentence):
    blueprint.add_app_template_filter(words)
blueprint.app_context_processor(lambda: {"max_right_answer_chars": MAX_RIGHT_ANSWER_CHARS})
