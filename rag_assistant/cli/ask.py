"""``rag-assistant ask`` and ``rag-assistant chat``: questions and commands in a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from rag_assistant.cli.errors import named_errors
from rag_assistant.cli.params import ID
from rag_assistant.conversations.commands import is_command, run_command
from rag_assistant.errors import AssistantError, OverflowDecisionNeeded
from rag_assistant.history import OVERFLOW_CHOICES
from rag_assistant.presenters.history import seen
from rag_assistant.presenters.turns import view_sentence
from rag_assistant.records import UNSET, Question, Turn, Unset
from rag_assistant.validation import spells_number

if TYPE_CHECKING:
    from rag_assistant.web.services import Services

CONVERSATION = click.option("--conversation", type=ID, help="Continue this conversation.")
LIMIT = click.option("--max-history-turns", help='How many earlier turns the model sees, or "all".')
OVERFLOW = click.option(
    "--on-overflow", type=click.Choice(OVERFLOW_CHOICES), help="What to do when the conversation gets too long."
)


def ask_command(services: Services) -> click.Command:
    """Return the command that asks one question."""

    @click.command("ask")
    @click.argument("question")
    @CONVERSATION
    @LIMIT
    @OVERFLOW
    def ask(question: str, conversation: int | None, max_history_turns: str | None, on_overflow: str | None) -> None:
        """Ask a question and print the answer as it is written."""
        with named_errors():
            services.prepare_to_answer()
            limit = _history_limit(max_history_turns)
            try:
                asked = Question(question, conversation, limit, on_overflow=on_overflow, interactive=True)
                turn = services.assistant.ask(asked)
                last = _follow(services, turn)
            except KeyboardInterrupt:
                raise click.Abort from None
            finally:
                services.close()
        _print_rest(last)
        if "conversation_id" in last:
            click.secho(f"Continue with: --conversation {last['conversation_id']}", dim=True, err=True)
        if "error" in last:
            raise click.ClickException(last["error"]["message"])

    return ask


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
    last = _follow(services, turn)
    _print_rest(last)
    if "error" in last:
        click.secho(last["error"]["message"], fg="red", err=True)
    return last


def _follow(services: Services, turn: Turn) -> dict[str, Any]:
    """Print an answer as it is written, and return the data of its last event. Ctrl-C stops it."""
    try:
        return _print_answer(services.assistant.follow(turn.id))
    except KeyboardInterrupt:
        services.assistant.stop(turn.id)
        raise


def _print_answer(events: Any) -> dict[str, Any]:
    """Print the text of an answer as it comes, and return the data of its last event."""
    last: dict[str, Any] = {}
    for event in events:
        if event is None:
            continue
        if event.name == "token":
            click.echo(event.data["text"], nl=False)
        elif event.name == "state":
            click.secho(event.data["message"], dim=True, err=True)
        elif event.name == "step":
            click.secho(f"{event.data['n']}. {event.data['tool']} {event.data['arguments']}", dim=True, err=True)
        last = event.data
    click.echo()
    return last


def _print_rest(answer: dict[str, Any]) -> None:
    """Print what the model did not see, the sources, and the notes of an answer."""
    history = answer.get("history")
    if history and history["left_out"]:
        seen_turns = seen(history["turns_kept"], history["left_out"])
        click.secho(view_sentence(seen_turns, answer.get("model")), fg="yellow", err=True)
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
