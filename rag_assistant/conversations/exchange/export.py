"""Export of a conversation in pieces: Markdown for reading, JSON for further use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rag_assistant.conversations.prompts import origin_of, title_for
from rag_assistant.history.words import span_in_words, view_in_words
from rag_assistant.records import AnswerVersion, Conversation, Correction, Scope, Source, Turn
from rag_assistant.records.views import VersionAnswer, answer_data, turn_data

MAX_HEADING_CHARS = 100
FORMATS = {"markdown": ("md", "text/markdown; charset=utf-8"), "json": ("json", "application/json")}
# Returns all answers of a turn that has more than one.
Versions = Callable[[int], list[AnswerVersion]]
# Returns by id later changes to what the answers of some turns rest on.
Corrections = Callable[[Sequence[Turn]], Mapping[int, Sequence[Correction]]]


def as_markdown(
    conversation: Conversation, turns: Iterable[Turn], versions: Versions, corrections: Corrections
) -> Iterator[str]:
    """Yield a conversation as Markdown: each question, its answers, their sources, and what is to be known of them."""
    yield f"# {_plain(conversation.title)}\n"
    if (origin := conversation.branched_from) is not None:
        yield f"\n*Branched from conversation {origin['conversation_id']}, before turn {origin['turn']}.*\n"
    if conversation.scope:
        yield f"\n*Limited to {_scope_in_words(conversation.scope)}.*\n"
    if conversation.summary is not None:
        summary = conversation.summary
        yield f"\n> Summary of {span_in_words(summary.first_turn, summary.last_turn)}, as the model sees it:\n>\n"
        yield _quoted(summary.text)
    for turn in turns:
        yield from _turn_as_markdown(turn, corrections([turn]).get(turn.id, ()))
        if turn.versions > 1:
            yield from _others_as_markdown(versions(turn.id), turn.versions)


def _turn_as_markdown(turn: Turn, corrections: Iterable[Correction]) -> Iterator[str]:
    if turn.erased_at is not None:
        yield f"\n## {turn.number}. (erased)\n\nErased on {turn.erased_at:%Y-%m-%d}.\n"
        return
    heading = title_for(turn.question, MAX_HEADING_CHARS)
    yield f"\n## {turn.number}. {_plain(heading)}\n\n"
    if re.search(r"\n|^\s*[#>~`=<*+-]", turn.question):
        fence = max(("```", *(ticks + "`" for ticks in re.findall("`{3,}", turn.question))), key=len)
        yield f"{fence}text\n{turn.question}\n{fence}\n\n"
    elif heading != turn.question:
        yield f"{_plain(turn.question)}\n\n"
    if turn.scope:
        yield f"*Limited to {_scope_in_words(turn.scope)}.*\n\n"
    yield f"{turn.answer or '(no answer)'}\n"
    yield from _sources_as_markdown(turn.sources, turn.listed_sources)
    if (rating := turn.rating) is not None:
        yield f"\n*{f'Answer {rating.version} rated' if turn.versions > 1 else 'Rated'} {rating.rating}.*\n"
        if rating.right_answer is not None:
            yield f"\n> Right answer:\n>\n{_quoted(rating.right_answer)}"
    sentences = [turn.error_message] if turn.error_message else []
    if (seen := view_in_words(turn)) is not None:
        sentences.append(seen)
    sentences += [*(one.sentence for one in turn.disagreements), *turn.notes, *(one.sentence for one in corrections)]
    for sentence in sentences:
        yield f"\n*{_plain(sentence)}*\n"


def _sources_as_markdown(sources: Sequence[Source], listed: Sequence[Source]) -> Iterator[str]:
    """Yield the sources to list of an answer, each with its date and page; if it cites none, the passages provided."""
    for source in listed:
        yield f"\n[{source.n}] {_place_of(source)}\n"
    if sources and not any(source.cited for source in sources):
        yield f"\nNo sources cited. Passages provided: {', '.join(dict.fromkeys(map(_place_of, sources)))}\n"


def _others_as_markdown(answers: Iterable[AnswerVersion], count: int) -> Iterator[str]:
    for one in answers:
        if one.chosen:
            continue
        ended = "" if one.status == "completed" else f" ({one.status})"
        yield f"\n> Answer {one.version} of {count}, not selected{ended}:\n>\n"
        yield _quoted(one.answer or "(no answer)")
        for line in _sources_as_markdown(one.sources, [source for source in one.sources if source.cited]):
            yield f">\n> {line.strip()}\n"


def as_json(conversation: Conversation, turns: Iterable[Turn], versions: Versions) -> Iterator[str]:
    """Yield a conversation as one JSON object.

    It has ``title``, ``created_at``, ``branched_from``, ``scope``, ``summary``, and ``turns`` as in the API, each with
    its ``scope`` and its ``other_answers``.
    """
    summary = conversation.summary
    head = {
        "title": conversation.title,
        "created_at": conversation.created_at.isoformat(),
        "branched_from": conversation.branched_from,
        "scope": conversation.scope.as_dict(),
        "summary": summary and {name: getattr(summary, name) for name in ("first_turn", "last_turn", "text")},
    }
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "turns": ['
    for number, turn in enumerate(turns):
        others = [one for one in versions(turn.id) if not one.chosen] if turn.versions > 1 else []
        answers = [answer_data(VersionAnswer, one) for one in others]
        data = turn_data(turn) | {"scope": turn.scope.as_dict(), "other_answers": answers}
        yield (", " if number else "") + json.dumps(data, ensure_ascii=False)
    yield "]}\n"


def _scope_in_words(scope: Scope) -> str:
    parts = {"document": scope.document_ids, "library": scope.library_ids}
    named = " or ".join(f"{name} {', '.join(map(str, ids))}" for name, ids in parts.items() if ids)
    narrowed = [f"tagged {' or '.join(scope.tags)}"] if scope.tags else []
    narrowed += [f"dated {scope.after or '…'} to {scope.before or '…'}"] if scope.after or scope.before else []
    where = " and ".join(narrowed)
    if not named:
        return f"documents {where}"
    return f"{named}, where {where}" if where else named


def _place_of(source: Source) -> str:
    return _plain(origin_of(source))


def _plain(text: str) -> str:
    """Return a line of text that is no HTML."""
    return text.replace("<", "\\<")


def _quoted(text: str) -> str:
    return "".join(f"> {line}".rstrip() + "\n" for line in text.splitlines())
