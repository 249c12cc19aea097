"""``rag-assistant ask`` and ``rag-assistant chat``: questions and commands in a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from rag_assistant.cli.chat_backends import ChatBackend, LocalChat, RemoteChat
from rag_assistant.cli.elsewhere import works_on
from rag_assistant.cli.params import ID
from rag_assistant.cli.remote import RemoteFailed
from rag_assistant.conversations.commands import commands_in_words, is_command
from rag_assistant.history import OVERFLOW_CHOICES
from rag_assistant.presenters.history import seen
from rag_assistant.presenters.token_usage import tokens_sentence
from rag_assistant.presenters.turns import view_sentence
from rag_assistant.records import UNSET, Event, Question, Unset
from rag_assistant.records.errors import AssistantError, OverflowDecisionNeeded
from rag_assistant.records.validation import spells_number

if TYPE_CHECKING:
    from rag_assistant.services import Services

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
    @works_on(services, LocalChat, RemoteChat)
    @click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON, as the API gives it.")
    def ask(
        chat: ChatBackend,
        question: str,
        conversation: int | None,
        max_history_turns: str | None,
        on_overflow: str | None,
        as_json: bool,
    ) -> None:
        """Ask a question and print the answer as it is written."""
        asked = Question(
            question, conversation, _history_limit(max_history_turns), on_overflow=on_overflow, interactive=True
        )
        with chat.opened():
            try:
                last = _follow(chat, asked, _print_nothing if as_json else _print_event)
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

    return ask


def chat_command(services: Services | None) -> click.Command:
    """Return the command that asks question after question; without ``services`` it asks servers elsewhere alone."""

    @click.command("chat")
    @CONVERSATION
    @LIMIT
    @works_on(services, LocalChat, RemoteChat)
    def chat(backend: ChatBackend, conversation: int | None, max_history_turns: str | None) -> None:
        """Chat in the terminal: /help lists the commands, Ctrl-C stops an answer, Ctrl-D quits."""
        limit = _history_limit(max_history_turns)
        with backend.opened():
            title = backend.begin(conversation)
            if title is not None:
                click.secho(title, bold=True)
            _converse(backend, conversation, limit)

    return chat


def _converse(chat: ChatBackend, conversation: int | None, limit: int | Unset | None) -> None:
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
                _command(chat, conversation, text)
                continue
            last = _ask_or_decide(chat, Question(text, conversation, limit, interactive=True))
            conversation = last.get("conversation_id", conversation)
        except AssistantError as error:
            click.secho(str(error), fg="red", err=True)
        except RemoteFailed as error:
            click.secho(error.message, fg="red", err=True)
        except KeyboardInterrupt:
            click.secho("Stopped.", err=True)


def _command(chat: ChatBackend, conversation: int | None, text: str) -> None:
    if text == "/help":
        click.echo(commands_in_words())
    elif conversation is None:
        click.secho("There is no conversation yet. Ask a question first.", fg="red", err=True)
    else:
        result = chat.run_command(conversation, text)
        if result.fold:
            click.clear()
        click.echo(result.text)


def _ask_or_decide(chat: ChatBackend, question: Question) -> dict[str, Any]:
    """Ask a question; if it needs a decision about older turns, ask for that first."""
    try:
        last = _follow(chat, question, _print_event)
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
            chat.remember(question.conversation_id, decision)
        last = _follow(chat, replace(question, on_overflow=decision), _print_event)
    click.echo()
    _print_rest(last)
    if "error" in last:
        click.secho(last["error"]["message"], fg="red", err=True)
    return last


def _follow(chat: ChatBackend, question: Question, show: Show) -> dict[str, Any]:
    """Ask, show the answer as it is written, and return the data of its last event. Ctrl-C stops it."""
    last: dict[str, Any] = {}
    with chat.answering(question) as events:
        for event in events:
            show(event)
            last = event.data
    return last


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
