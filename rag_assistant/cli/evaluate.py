"""``rag-assistant eval``: ask rated questions again, and say what got better or worse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rag_assistant.answering.scoring import count_verdicts, counts_in_words, figures_in_words, what_is_worse
from rag_assistant.cli.commands import ID, services_command
from rag_assistant.records.errors import AssistantError
from rag_assistant.records.views import data_of, rated_view

if TYPE_CHECKING:
    from rag_assistant.answering.evaluation import Evaluated
    from rag_assistant.services import Services

NOTHING_RATED_THERE = "No answers of conversation {} are rated. Rate answers with the thumbs below them."
NOTHING_RATED = "There is nothing to ask: no answers are rated. Rate answers with the thumbs below them."
# A row has less than 80 columns.
ROW = "{turn:>5} {rated:1} {question:24}  {found:7}  {cited:8}  {doubts:6}  {answer:10}  "
HEADS = {name: name.title() for name in ("turn", "question", "found", "cited", "doubts", "answer")} | {"rated": ""}
MAX_QUESTION_CHARS = 24
MARKS = {"up": "+", "down": "-"}
COLOURS = {"worse": "red", "failed": "red", "better": "green"}
INTERRUPTED = 130


class NotEvaluated(click.ClickException):
    """Nothing could be asked, so nothing is better or worse."""

    exit_code = 2


@services_command("eval", start=False)
@click.option("--conversation", type=ID, help="Only the questions of this conversation.")
@click.option("--limit", type=ID, help="Only this many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def evaluate(services: Services, conversation: int | None, limit: int | None, as_json: bool) -> None:
    """Ask every rated question again and show what got better or worse.

    Conversations stay unchanged. Exit code: 0 if nothing is worse, 1 if something is worse or failed, 2 if nothing
    could be asked.
    """
    done: list[Evaluated] = []
    interrupted = False
    try:
        services.prepare()
        if conversation is not None:
            services.conversations.get(conversation)
        rated = [turn for turn in services.evaluation.rated() if conversation in (None, turn.conversation_id)]
        if not rated:
            raise NotEvaluated(NOTHING_RATED_THERE.format(conversation) if conversation else NOTHING_RATED)
        services.load_embedder()
        services.keywords.load()
        chosen = rated[-limit:] if limit else rated  # The oldest first.
        for number, turn in enumerate(chosen, 1):
            click.secho(f"{number}/{len(chosen)}  {' '.join(turn.question.split())[:70]}", dim=True, err=True)
            done.append(services.evaluation.ask_again(turn))
    except AssistantError as error:
        raise NotEvaluated(str(error)) from error
    except KeyboardInterrupt:
        interrupted = True
    if as_json:
        counts = {
            "counts": count_verdicts(one.verdict for one in done),
            "since_last": count_verdicts(one.since_last for one in done if one.since_last),
        }
        questions = [
            data_of(rated_view(one.turn))
            | {"verdict": one.verdict, "since_last": one.since_last, "error": one.error, "result": one.result}
            for one in done
        ]
        click.echo(json.dumps(counts | {"questions": questions}, ensure_ascii=False, indent=2))
    else:
        _print(done)
    worse = any(one.verdict in ("worse", "failed") for one in done)
    raise click.exceptions.Exit(INTERRUPTED if interrupted else int(worse))


def _print(done: Sequence[Evaluated]) -> None:
    click.secho(ROW.format(**HEADS) + "Result", bold=True)
    nothing = dict.fromkeys(("found", "cited", "doubts", "answer"), "-")
    for one in done:
        question = " ".join(one.turn.question.split())
        row = ROW.format(
            turn=one.turn.id,
            rated=MARKS[one.turn.rating.rating] if one.turn.rating else "",
            question=question if len(question) <= MAX_QUESTION_CHARS else question[: MAX_QUESTION_CHARS - 1] + "…",
            **(figures_in_words(one.result) if one.result else nothing),
        )
        click.echo(row + click.style(one.verdict, fg=COLOURS.get(one.verdict)))
    reasons = {one.turn.id: one.error or what_is_worse(one.result["checks"] if one.result else {}) for one in done}
    click.echo()
    for turn_id, reason in reasons.items():
        if reason:
            click.echo(f"Turn {turn_id}: {reason}")
    questions = "1 question" if len(done) == 1 else f"{len(done)} questions"
    click.echo(f"{questions}: {counts_in_words(count_verdicts(one.verdict for one in done))}.")
    if since := count_verdicts(one.since_last for one in done if one.since_last):
        named = ", ".join(str(one.turn.id) for one in done if one.since_last == "worse")
        click.echo(f"Since the last run: {counts_in_words(since)}.{f' Worse: turn {named}.' if named else ''}")
