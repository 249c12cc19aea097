"""``rag-assistant ask`` and ``rag-assistant chat``: questions and commands in a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_assistant.cli.errors import named_errors
from rag_assistant.cli.params import ID
from rag_assistant.cli.remote import RemoteServer, server_options, token_from
from rag_assistant.conversations.commands import is_command, run_command
from rag_assistant.errors import AssistantError, OverflowDecisionNeeded
from rag_assistant.history import OVERFLOW_CHOICES
from rag_assistant.presenters.history import seen
from rag_assistant.presenters.token_usage import tokens_sentence
from rag_assistant.presenters.turns import view_sentence
from rag_assistant.records import UNSET, Event, Question, Turn, Unset
from rag_assistant.validation import spells_number

if TYPE_CHECKING:
    from rag_assistant.web.services import Services

Show = Callable[[Event], None]

CONVERSATION = click.option("--conversation", type=ID, help="Continue this conversation.")
LIMIT = click.option("--max-history-turns", help='How many earlier turns the model sees, or "all".')
OVERFLOW = click.option(
    "--on-overflow", type=click.Choice(OVERFLOW_CHOICES), help="What to do when the conversation gets too long."
)


def ask_command(services: Services | None) -> click.Command:
    """Return the command that asks one question; without ``services`` it asks servers elsewhere alone."""

    @click.command("ask")
    @click.argument("question")
    @CONVERSATION
    @LIMIT
    @OVERFLOW
    @server_options
    @click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON, as the API gives it.")
    def ask(
        question: str,
        conversation: int | None,
        max_history_turns: str | None,
        on_overflow: str | None,
        server: str | None,
        token_file: Path | None,
        as_json: bool,
    ) -> None:
        """Ask a question and print the answer as it is written."""
        asked = Question(
            question, conversation, _history_limit(max_history_turns), on_overflow=on_overflow, interactive=True
        )
        show = _print_nothing if as_json else _print_event
        if server is not None:
            last = _ask_there(RemoteServer(server, token_from(token_file)), asked, show)
        elif services is None or token_file is not None:
            raise click.UsageError("--token-file needs --server.")
        else:
            last = _ask_here(services, asked, show)
        if as_json:
            click.echo(json.dumps(last, ensure_ascii=False))
        else:
            click.echo()
            _print_rest(last)
            if "conversation_id" in last:
                click.secho(f"Continue with: --conversation {last['conversation_id']}", dim=True, err=True)
        if "error" in last:
            raise click.ClickException(last["error"]["message"])

    return ask


def _ask_here(services: Services, question: Question, show: Show) -> dict[str, Any]:
    """Ask on the data of this machine; return the data of the last event."""
    with named_errors():
        services.prepare_to_answer()
        try:
            return _follow(services, services.assistant.ask(question), show)
        except KeyboardInterrupt:
            raise click.Abort from None
        finally:
            services.close()


def _ask_there(server: RemoteServer, question: Question, show: Show) -> dict[str, Any]:
    """Ask a server elsewhere; return the data of the last event. Ctrl-C stops the answer there."""
    body: dict[str, Any] = {"question": question.text}
    body |= {"conversation_id": question.conversation_id} if question.conversation_id is not None else {}
    body |= {"on_overflow": question.on_overflow} if question.on_overflow is not None else {}
    if not isinstance(question.max_history_turns, Unset):
        body["max_history_turns"] = question.max_history_turns
    last: dict[str, Any] = {}
    turn_id: int | None = None
    try:
        for event in server.ask(body):
            show(event)
            last = event.data
            turn_id = last.get("turn_id", turn_id)
    except KeyboardInterrupt:
        if turn_id is not None:
            server.stop(turn_id)
        raise click.Abort from None
    return last


def chat_command(services: Services) -> click.Command:
    """Return the command that asks question after question."""

    @click.command("chat")
    @CONVERSATION
    @LIMIT
    def chat(conversation: int | None, max_history_turns: str | None) -> None:
        """Chat in the terminal: /help lists the commands, Ctrl-C stops an answer, Ctrl-D quits."""
        with named_errors():
            limit = _history_limit(max_history_turns)
            services.prepare_to_answer()
            if conversation is not None:
                click.secho(services.conversations.get(conversation).title, bold=True)
            try:
                _converse(services, conversation, limit)
            finally:
                services.close()

    return chat


def _converse(services: Services, conversation: int | None, limit: int | Unset | None) -> None:
    """Read questions and commands until the input ends; errors are printed, and the chat goes on."""
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
                _command(services, conversation, text)
                continue
            question = Question(text, conversation, limit, interactive=True)
            last = _ask_or_decide(services, question)
            conversation = last.get("conversation_id", conversation)
        except AssistantError as error:
            click.secho(str(error), fg="red", err=True)
        except KeyboardInterrupt:
            click.secho("Stopped.", err=True)


def _command(services: Services, conversation: int | None, text: str) -> None:
    if conversation is None and text != "/help":
        click.secho("There is no conversation yet. Ask a question first.", fg="red", err=True)
        return
    result = run_command(text, services.history_actions, conversation or 0)
    if result.fold:
        click.clear()
    click.echo(result.text)


def _ask_or_decide(services: Services, question: Question) -> dict[str, Any]:
    """Ask a question; if it needs a decision about older turns, ask for that first."""
    try:
        turn = services.assistant.ask(question)
    except OverflowDecisionNeeded as needed:
        click.secho(str(needed), fg="yellow")
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
        if question.conversation_id is not None and click.confirm("Remember this choice for this conversation?"):
            services.conversations.change(question.conversation_id, own={"on_overflow": decision})
        turn = services.assistant.ask(replace(question, on_overflow=decision))
    last = _follow(services, turn, _print_event)
    click.echo()
    _print_rest(last)
    if "error" in last:
        click.secho(last["error"]["message"], fg="red", err=True)
    return last


def _follow(services: Services, turn: Turn, show: Show) -> dict[str, Any]:
    """Show an answer as it is written, and return the data of its last event. Ctrl-C stops it."""
    last: dict[str, Any] = {}
    try:
        for event in services.assistant.follow(turn.id):
            if event is not None:
                show(event)
                last = event.data
        return last
    except KeyboardInterrupt:
        services.assistant.stop(turn.id)
        raise


def _print_event(event: Event) -> None:
    """Print the text of an answer as it comes, and what is being done for it."""
    if event.name == "token":
        click.echo(event.data["text"], nl=False)
    elif event.name == "state":
        click.secho(event.data["message"], dim=True, err=True)
    elif event.name == "step":
        click.secho(f"{event.data['n']}. {event.data['tool']} {event.data['arguments']}", dim=True, err=True)


def _print_nothing(_event: Event) -> None:
    """Wait for the end."""


def _print_rest(answer: dict[str, Any]) -> None:
    """Print what the model did not see, the sources, and the notes of an answer."""
    history = answer.get("history")
    if history and history["left_out"]:
        seen_turns = seen(history["turns_kept"], history["left_out"])
        click.secho(view_sentence(seen_turns, answer.get("model")), fg="yellow", err=True)
    if history and history["tokens"]["limit"]:
        click.secho(tokens_sentence(history["tokens"]), dim=True, err=True)
    sources = answer.get("sources", ())
    if sources and not any(source["cited"] for source in sources):
        click.secho("No sources cited. Passages provided:", dim=True, err=True)
    for source in sources:
        page = f", page {source['page']}" if source["page"] else ""
        click.secho(f"[{source['n']}] {source['document']}{page}", dim=True, err=True)
    for note in answer.get("notes", ()):
        click.secho(note, fg="yellow", err=True)


def _history_limit(said: str | None) -> int | Unset | None:
    if said is None:
        return UNSET
    if said.lower() in ("all", "null", "none"):
        return None
    if not (spells_number(said)):
        raise click.BadParameter(f'"{said}"; it must be a whole number, 0 or more, or "all" for no limit.')
    return int(said)
