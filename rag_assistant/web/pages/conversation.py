"""The page of a conversation.

The server renders everything that can be read; scripts only make it quicker to use. All actions are plain forms, so
that everything works without scripts.
"""

from collections.abc import Sequence
from typing import Any

from flask import Blueprint, Response, make_response, render_template, request, url_for
from msgspec.structs import replace

from rag_assistant.conversations.commands import COMMANDS, REMEMBER, CommandResult, is_command, run_command
from rag_assistant.conversations.summary_lines import LEAD_OF_MODEL, MODEL_LEAD
from rag_assistant.records import EVERYTHING, MAX_INT32, QUOTES, Conversation, Scope, Turn
from rag_assistant.records.errors import InvalidRequest, OverflowDecisionNeeded
from rag_assistant.web.api import conversations as api
from rag_assistant.web.api import turns as turns_api
from rag_assistant.web.forms import as_form, to, to_its_turn, to_page, to_turn
from rag_assistant.web.identity import identity
from rag_assistant.web.languages import gettext, ngettext, translated
from rag_assistant.web.markdown.render import render_markdown, too_much_for_page
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.pages.history import EXAMPLES
from rag_assistant.web.pages.source import date_of, doubt_in_words, doubts_of
from rag_assistant.web.pages.turn_context import around, page_of_turns
from rag_assistant.web.request_bodies import QueryBody, ScopeBody, SummariseBody
from rag_assistant.web.request_parsing import checked, form_fields, ids_of, scope_asked, whole_number
from rag_assistant.web.routing import ASK, READ, services

blueprint = Blueprint("pages", __name__)

TURNS_SHOWN = 20
# The newest of these that did not fail are on the start page.
DOCUMENTS_LOOKED_AT = 50
RECENT_SHOWN = 3
# How many documents of a scope are named.
MAX_NAMED = 3


@blueprint.get("/", policy=READ)
def start() -> str:
    """Show an empty conversation, about all documents or those named in the address."""
    return conversation_page(None, [])


@blueprint.get("/temporary", policy=READ)
def temporary() -> str:
    """Show an empty conversation that is kept only in this page."""
    return conversation_page(None, [], temporary=True)


@blueprint.get("/conversations/<int:conversation_id>", policy=READ)
def conversation(conversation_id: int) -> str:
    """Show a conversation's latest turns, those before turn number ``before``, or those around turn ``at``."""
    before = whole_number("before", None, 1, MAX_INT32)
    if at := whole_number("at", None, 1, MAX_INT32):
        before = min(at + TURNS_SHOWN // 2, MAX_INT32)
    shown = services().conversations.open(conversation_id)
    turns, earlier = page_of_turns(conversation_id, TURNS_SHOWN, before)
    return conversation_page(shown, turns, earlier, editing=whole_number("edit", None, 1, MAX_INT32))


@blueprint.post("/ask", policy=ASK)
def ask() -> Response:
    """Submit a question, and show its turn, or a command, and show its result."""
    content: dict[str, Any] = {"question": ""} | {name: sent for name, sent in form_fields(QueryBody).items() if sent}
    conversation_id = content.get("conversation_id")
    is_compact = content["question"].strip().lower() == "/compact"
    if conversation_id is not None and (is_compact or content.get("on_overflow") == "compact"):
        if "billed" not in request.form:
            return make_response(_latest_page(conversation_id, billed=True))
        # With nothing ticked, nothing is kept.
        wanted = checked(SummariseBody, {"keep": []} | form_fields(SummariseBody))
        services().history_actions.compact(conversation_id, wanted.wishes)
        if is_compact:
            return to_page("pages.conversation", conversation_id=conversation_id, _anchor="summary")
        del content["on_overflow"]
    if is_command(command := content["question"]):
        name = command.split()[0].lower()
        if conversation_id is None and name in COMMANDS and name not in ("/help", REMEMBER):
            raise InvalidRequest("There is no conversation yet. Ask a question first.")
        if conversation_id is not None:
            services().conversations.get(conversation_id)
        result = run_command(command, services().history_actions, conversation_id or 0)
        return make_response(_latest_page(conversation_id, result=result))
    body = checked(QueryBody, content)
    try:
        turn = services().assistant.ask(body.as_question(None, interactive=True))
    except OverflowDecisionNeeded as error:
        decision = error.details | {"question": body.question, "scope": body.scope() or EVERYTHING}
        return make_response(_latest_page(body.conversation_id, decision=decision), 409)
    if request.form.get("remember") and request.form.get("on_overflow"):
        services().conversations.change(turn.conversation_id, own={"on_overflow": request.form["on_overflow"]})
    return to_turn(turn)


@blueprint.get("/conversations/<int:conversation_id>/bill", policy=READ)
def bill(conversation_id: int) -> str:
    """Return the form with what a summary may lose, for the script that shows it in a dialog."""
    conversation = services().conversations.get(conversation_id)
    return render_template("_bill.html", conversation=conversation, **_bill(conversation_id))


def _bill(conversation_id: int) -> dict[str, Any]:
    return {"bill": services().history_actions.bill(conversation_id), "has_model": services().models.connected}


@blueprint.post("/turns/<int:turn_id>/regenerate", policy=ASK)
def regenerate(turn_id: int) -> Response:
    """Regenerate the last answer and show its turn; turn number ``pin`` is pinned first, so that it is sent."""
    if "pin" in request.form:
        (number,) = ids_of("pin", [request.form["pin"]])
        earlier = services().turns.page(services().turns.get(turn_id).conversation_id, 1, number + 1)
        if not earlier or earlier[0].number != number:
            raise InvalidRequest(f"pin is {number}; it must be the number of an earlier turn.")
        services().history.mark(earlier[0].id, pinned=True)
    return to_turn(services().assistant.regenerate(turn_id, request.form.get("quotes") == "true"))


@blueprint.post("/turns/<int:turn_id>/versions", policy=ASK)
def choose_version(turn_id: int) -> Response:
    """Make another answer current, and show the turn."""
    (version,) = ids_of("version", [request.form.get("version", "")])
    services().turns.get(turn_id)
    return to_turn(services().versions.choose(turn_id, version))


@blueprint.get("/turns/<int:turn_id>", policy=READ)
def turn(turn_id: int) -> str:
    """Return the transcript entry of one turn, for the script that inserts it."""
    turn = services().turns.get(turn_id)
    earlier = services().turns.page(turn.conversation_id, 1, turn.number)
    return render_template(
        "turn.html",
        turn=turn,
        view=services().history_actions.view(turn.conversation_id),
        around=around(services().conversations.get(turn.conversation_id), [turn], earlier[0] if earlier else None),
        editing=turn.number if request.args.get("edit") == "1" else None,
    )


@blueprint.post("/conversations/<int:conversation_id>/scope", policy=ASK)
def widen(conversation_id: int) -> Response:
    """Let a conversation use all documents again, or with dates in the form, those of its documents."""
    dates = checked(ScopeBody, {name: sent or None for name, sent in form_fields(ScopeBody).items()})
    now = services().conversations.get(conversation_id).scope
    services().conversations.change(conversation_id, scope=dates.scope(now) or EVERYTHING)
    return to_page("pages.conversation", conversation_id=conversation_id)


blueprint.post("/turns/<int:turn_id>/stop", policy=ASK)(as_form(turns_api.stop, to_its_turn))
blueprint.post("/turns/<int:turn_id>/retry", policy=ASK)(as_form(turns_api.retry, to_its_turn))
blueprint.add_app_template_filter(lambda scope: services().documents.present(scope), "present")
ONE = "/conversations/<int:conversation_id>"
shown_again = to("pages.conversation", "conversation_id")
blueprint.post(f"{ONE}/change", policy=ASK)(as_form(api.change_conversation, shown_again))
blueprint.post(f"{ONE}/restore", policy=ASK)(as_form(api.restore_conversation, shown_again))
blueprint.post(f"{ONE}/purge", policy=ASK)(as_form(api.purge_conversation, to("pages.start", erased=1)))
blueprint.post(f"{ONE}/delete", policy=ASK)(
    as_form(api.delete_conversation, lambda data: to_page("pages.start", deleted=data["conversation_id"]))
)


def _latest_page(conversation_id: int | None, **more: Any) -> str:
    """Render a conversation's latest turns with something below them."""
    if conversation_id is None:
        return conversation_page(None, [], **more)
    shown = services().conversations.get(conversation_id)
    turns, earlier = page_of_turns(conversation_id, TURNS_SHOWN)
    return conversation_page(shown, turns, earlier, **more)


def conversation_page(
    shown: Conversation | None,
    turns: list[Turn],
    earlier: Turn | None = None,
    *,
    editing: int | None = None,
    result: CommandResult | None = None,
    decision: dict[str, Any] | None = None,
    billed: bool = False,
    temporary: bool = False,
) -> str:
    """Render the page of a conversation, or of none yet.

    ``earlier`` is the turn before ``turns``, ``editing`` the number of the one whose question is being edited.
    ``result`` is what a command returned, ``decision`` a question that needs a decision first, ``billed`` whether to
    show what a summary may lose, ``temporary`` whether nothing is stored.
    """
    # First the tag, then the content: a change in between is fetched again, not missed.
    tag = services().branches.etag(shown.id) if shown else None
    view = services().history_actions.view(shown.id) if shown else None
    # The conversation that the address names as deleted, unless another was deleted after it.
    deleted_id = whole_number("deleted", None, 1, MAX_INT32)
    last_deleted = services().conversations.page(1, deleted=True) if deleted_id is not None else []
    scope = shown.scope if shown else scope_asked("documents")
    project, later = shown.project if shown else None, None
    if not shown and (project_id := whole_number("project", None, 1, MAX_INT32)):
        project = services().projects.get(project_id)
    if shown and turns and turns[-1].number < shown.turns:
        first = turns[-1].number + 1
        at = first + TURNS_SHOWN // 2
        later = url_for("pages.conversation", conversation_id=shown.id, at=at, _anchor=f"turn-{first}")
    return render_template(
        "conversation.html",
        turns=turns,
        plain={turns[nth].id for nth in too_much_for_page([turn.answer for turn in turns])},
        view=view,
        tag=tag,
        around=around(shown, turns, earlier),
        links=services().links.of(shown.id) if shown and identity().person else [],
        origin=services().branches.origin_of(shown.branched_from) if shown else None,
        editing=editing,
        result=result,
        decision=decision,
        **(_bill(shown.id) if shown and billed else {}),
        **({} if shown else library_holds()),
        temporary=temporary,
        deleted=next((one for one in last_deleted if one.id == deleted_id), None),
        erased=request.args.get("erased") == "1",
        scope=scope,
        project=project,
        address=url_for("pages.conversation", conversation_id=shown.id) if shown else url_for("pages.start"),
        later=later,
        refresh=any(turn.status == "running" for turn in turns) or bool(shown and shown.operation),
        **frame(shown),
    )


def library_holds() -> dict[str, Any]:
    """Return a person's newest documents; without any, example questions about the guide."""
    newest = services().documents.page(DOCUMENTS_LOOKED_AT, guide=False)
    own = [one for one in newest if one.state not in ("failed", "cancelled") and not one.replaces]
    return {"recent": own[:RECENT_SHOWN], "offered": EXAMPLES if not own and services().documents.guide() else ()}


@blueprint.app_template_filter()
def markdown(turn: Turn, plain: bool = False) -> str:
    """Render a turn's answer, with its citations and doubts about them; a ``plain`` one isn't rendered."""
    doubts = {
        (source.n, doubt["nth"]): translated(doubt_in_words(doubt, source.n)) for source, doubt in doubts_of(turn)
    }
    quotes, lead, own = turn.answer.partition(MODEL_LEAD)
    answer = turn.answer
    # What isn't quoted is ours, and no document's; so is all of it where nothing was found.
    if turn.model == QUOTES or lead or (turn.search and not turn.model):
        lines = [one if one.startswith((">", "- ")) else translated(one) for one in quotes.split("\n")]
        answer = "\n".join(lines) + (f"\n\n{translated(LEAD_OF_MODEL)}\n\n{own}" if lead else "")
    return render_markdown(answer, [source.n for source in turn.sources], f"source-{turn.number}", doubts, plain=plain)


@blueprint.app_template_filter()
def scope_in_words(scope: Scope) -> str:
    """Return a scope in words, such as "geese.pdf" or "documents tagged birds or boats"."""
    tags = _listed(scope.tags, gettext("or"))
    if scope.after or scope.before:
        dates = " - ".join(date_of(one) if one else "…" for one in (scope.after, scope.before))
        others = replace(scope, after=None, before=None)
        dated = gettext("documents dated {dates}", dates=dates)
        return f"{dated}; {scope_in_words(others)}" if others else dated
    if not (scope.document_ids or scope.library_ids):
        return gettext("documents tagged {tags}", tags=tags)
    named = scope.document_ids[:MAX_NAMED]
    names = services().documents.names(named)
    words = [names.get(one, gettext("document {n} (deleted)", n=one)) for one in named]
    if len(scope.document_ids) > MAX_NAMED:
        words.append(ngettext("{n} more", "{n} more", len(scope.document_ids) - MAX_NAMED))
    libraries = services().documents.library_names(scope.library_ids) if scope.library_ids else {}
    words += [gettext("library {name}", name=libraries.get(one, f"{one} (-)")) for one in scope.library_ids]
    joined = _listed(words, gettext("and"))
    return gettext("{documents}, if tagged {tags}", documents=joined, tags=tags) if tags else joined


def _listed(words: Sequence[str], last: str) -> str:
    """Return words as a list in a sentence: "a, b and c"."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
