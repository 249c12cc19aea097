"""``rag-assistant ask`` and ``rag-assistant chat``: questions and commands in a terminal."""

import json
from collections.abc import Callable
from typing import Any

import click
from msgspec import convert

from rag_assistant.cli.api import Api, api_command
from rag_assistant.cli.commands import ID, ApiError
from rag_assistant.cli.documents import process_pending
from rag_assistant.conversations.commands import NOTED, REMEMBER, commands_in_words, is_command
from rag_assistant.history import OVERFLOW_CHOICES
from rag_assistant.history.figures import tokens_sentence
from rag_assistant.history.words import seen, view_sentence
from rag_assistant.records import Disagreement, Event
from rag_assistant.records.errors import OverflowDecisionNeeded
from rag_assistant.records.validation import spells_number

# A question waits for at most this many documents, and this long for embeddings: keyword search finds them before.
MAX_READ_FIRST = 20
MAX_EMBEDDING_WAIT_SECONDS = 30.0

Question = dict[str, Any]

CONVERSATION = click.option("--conversation", type=ID, help="Continue this conversation.")
LIMIT = click.option("--max-history-turns", help='How many earlier turns the model sees, or "all".')
OVERFLOW = click.option(
    "--on-overflow", type=click.Choice(OVERFLOW_CHOICES), help="What to do when the conversation gets too long."
)


@api_command("ask", answers=True)
@click.argument("question")
@CONVERSATION
@LIMIT
@OVERFLOW
@click.option("--after", help="Only documents dated from this day, month or year on.")
@click.option("--before", help="Only documents dated up to this day, month or year.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON, as the API returns it.")
def ask(
    api: Api,
    question: str,
    conversation: int | None,
    max_history_turns: str | None,
    as_json: bool,
    **given: str | None,
) -> None:
    """Ask a question and print the answer as it is written."""
    body = _question(question, conversation, _history_limit(max_history_turns))
    body |= {name: value for name, value in given.items() if value is not None}
    try:
        _read_pending(api)
        last = _follow(api, body, None if as_json else _print_event)
    except KeyboardInterrupt:
        raise click.Abort from None
    if as_json:
        click.echo(json.dumps(last, ensure_ascii=False))
    else:
        click.echo()
        _print_rest(last)
        if "conversation_id" in last:
            click.secho(f"Continue with: --conversation {last['conversation_id']}", dim=True, err=True)
    if "error" in last:
        raise click.ClickException(last["error"]["message"])


@api_command("chat", answers=True)
@CONVERSATION
@LIMIT
def chat(api: Api, conversation: int | None, max_history_turns: str | None) -> None:
    """Chat in the terminal: /help lists the commands, Ctrl-C stops an answer, Ctrl-D quits."""
    limit = _history_limit(max_history_turns)
    _read_pending(api)
    if conversation is None:
        api.call("GET", "/api/conversations", limit="1")  # Fails early without permission.
    else:
        click.secho(api.call("GET", f"/api/conversations/{conversation}")["title"], bold=True)
    while True:
        try:
            text = click.prompt("", prompt_suffix="> ", default="", show_default=False).strip()
        except (EOFError, click.Abort):
            click.echo()
            return
        if not text:
            continue
        try:
            if is_command(text):
                _command(api, conversation, text)
                continue
            last = _ask_or_decide(api, _question(text, conversation, limit))
            conversation = last.get("conversation_id", conversation)
        except ApiError as error:
            click.secho(error.message, fg="red", err=True)
        except KeyboardInterrupt:
            click.secho("Stopped.", err=True)


def _read_pending(api: Api) -> None:
    if api.services is not None:
        process_pending(api.services, MAX_READ_FIRST, MAX_EMBEDDING_WAIT_SECONDS)


def _command(api: Api, conversation: int | None, text: str) -> None:
    if text == "/help":
        click.echo(commands_in_words())
    elif text.lower().startswith(f"{REMEMBER} "):
        api.call("POST", "/api/notes", {"text": text.partition(" ")[2].strip()})
        click.echo(NOTED)
    elif conversation is None:
        click.secho("There is no conversation yet. Ask a question first.", fg="red", err=True)
    else:
        result = api.call("POST", f"/api/conversations/{conversation}/commands", {"command": text})
        if result["fold"]:
            click.clear()
        click.echo(result["text"])


def _ask_or_decide(api: Api, question: Question) -> dict[str, Any]:
    """Ask a question; if it needs a decision about older turns, ask for that first."""
    try:
        last = _follow(api, question, _print_event)
    except ApiError as needed:
        if needed.type != OverflowDecisionNeeded.__name__:
            raise
        click.secho(needed.details["sentence"], fg="yellow")
        for name, does in needed.details["options"].items():
            click.echo(f"  {name}: {does}")
        names = [*needed.details["options"], "cancel"]
        try:
            decision = click.prompt("What should happen to older turns?", type=click.Choice(names))
        except (EOFError, click.Abort):
            decision = "cancel"
        if decision == "cancel":
            click.secho("Cancelled. The question was not sent.", dim=True)
            return {}
        if "conversation_id" in question and click.confirm("Remember this choice for this conversation?"):
            api.call("PATCH", f"/api/conversations/{question['conversation_id']}", {"on_overflow": decision})
        last = _follow(api, question | {"on_overflow": decision}, _print_event)
    click.echo()
    _print_rest(last)
    if "error" in last:
        click.secho(last["error"]["message"], fg="red", err=True)
    return last


def _follow(api: Api, question: Question, show: Callable[[Event], None] | None) -> dict[str, Any]:
    """Ask, pass the events of the answer to ``show``, and return the last one's data. Ctrl-C stops the answer."""
    last: dict[str, Any] = {}
    with api.answering(question) as events:
        for event in events:
            if show is not None:
                show(event)
            last = event.data
    return last


def _print_event(event: Event) -> None:
    if event.name == "token":
        click.echo(event.data["text"], nl=False)
    elif event.name == "state":
        click.secho(event.data["message"], dim=True, err=True)
    elif event.name == "step":
        click.secho(f"{event.data['n']}. {event.data['tool']} {event.data['arguments']}", dim=True, err=True)


def _print_rest(answer: dict[str, Any]) -> None:
    """Print what the model didn't see, the sources, and the notes of an answer."""
    history = answer.get("history")
    if history and history["left_out"]:
        seen_turns = seen(history["turns_kept"], history["left_out"])
        click.secho(view_sentence(seen_turns, answer.get("model")), fg="yellow", err=True)
    if history and history["tokens"]["limit"]:
        click.secho(tokens_sentence(history["tokens"]), dim=True, err=True)
    sources = answer.get("sources", ())
    disagreements = convert((answer.get("search") or {}).get("disagreements", ()), tuple[Disagreement, ...])
    numbers = {n for one in disagreements for some in one.passages for n in some}
    cited = [source for source in sources if source["cited"]]
    if "error" in answer:
        sources = cited
    elif sources and not cited:
        click.secho("No sources cited. Passages provided:", dim=True, err=True)
    for source in sources:
        if source["cited"] or not cited or source["n"] in numbers:
            date = None if source["date_from"] == "added" else source["date"]
            parts = source["document"], date, source["page"] and f"page {source['page']}"
            click.secho(f"[{source['n']}] {', '.join(filter(None, parts))}", dim=True, err=True)
    for one in disagreements:
        click.secho(one.sentence, fg="yellow", err=True)
    for note in answer.get("notes", ()):
        click.secho(note, fg="yellow", err=True)


def _question(text: str, conversation: int | None, limit: dict[str, int | None]) -> Question:
    return {"question": text, **({"conversation_id": conversation} if conversation is not None else {}), **limit}


def _history_limit(option: str | None) -> dict[str, int | None]:
    """Return the /api/query field of an option, if it was given. Raises click.BadParameter."""
    if option is None:
        return {}
    if option.lower() in ("all", "null", "none"):
        return {"max_history_turns": None}
    if not spells_number(option):
        raise click.BadParameter(f'"{option}"; it must be a whole number, 0 or more, or "all" for no limit.')
    return {"max_history_turns": int(option)}
