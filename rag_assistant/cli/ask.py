"""``rag-assistant ask``: a question, or a command for a conversation, in a terminal."""

import json
from typing import Any

import click
from msgspec import convert

from rag_assistant.cli.api import Api, api_command
from rag_assistant.cli.commands import ID
from rag_assistant.cli.documents import process_pending
from rag_assistant.conversations.commands import NOTED, REMEMBER, commands_in_words, is_command
from rag_assistant.history import OVERFLOW_CHOICES
from rag_assistant.history.figures import tokens_sentence
from rag_assistant.history.words import seen, view_sentence
from rag_assistant.records import Disagreement, Event
from rag_assistant.records.validation import spells_number

# A question waits for at most this many documents, and this long for embeddings: keyword search finds them before.
MAX_READ_FIRST = 20
MAX_EMBEDDING_WAIT_SECONDS = 30.0


@api_command("ask", answers=True)
@click.argument("question")
@click.option("--conversation", type=ID, help="Continue this conversation.")
@click.option("--max-history-turns", help='How many earlier turns the model sees, or "all".')
@click.option("--on-overflow", type=click.Choice(OVERFLOW_CHOICES), help="What to do with older turns that do not fit.")
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
    """Ask a question and print the answer as it is written; Ctrl-C stops it.

    With --conversation, a command such as /history or /clear-history runs instead; /help lists them.
    """
    if is_command(question):
        _command(api, conversation, question)
        return
    body = {"question": question, **_history_limit(max_history_turns)}
    body |= {name: value for name, value in {"conversation_id": conversation, **given}.items() if value is not None}
    last: dict[str, Any] = {}
    try:
        if api.services is not None:
            process_pending(api.services, MAX_READ_FIRST, MAX_EMBEDDING_WAIT_SECONDS)
        with api.answering(body) as events:
            for event in events:
                if not as_json:
                    _print_event(event)
                last = event.data
    except KeyboardInterrupt:  # Which has stopped the answer.
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


def _command(api: Api, conversation: int | None, text: str) -> None:
    if text == "/help":
        click.echo(commands_in_words())
    elif text.lower().startswith(f"{REMEMBER} "):
        api.call("POST", "/api/notes", {"text": text.partition(" ")[2].strip()})
        click.echo(NOTED)
    elif conversation is None:
        raise click.UsageError("A command needs the conversation: --conversation.")
    else:
        click.echo(api.call("POST", f"/api/conversations/{conversation}/commands", {"command": text})["text"])


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


def _history_limit(option: str | None) -> dict[str, int | None]:
    """Return the /api/query field of an option, if it was given. Raises click.BadParameter."""
    if option is None:
        return {}
    if option.lower() in ("all", "null", "none"):
        return {"max_history_turns": None}
    if not spells_number(option):
        raise click.BadParameter(f'"{option}"; it must be a whole number, 0 or more, or "all" for no limit.')
    return {"max_history_turns": int(option)}
