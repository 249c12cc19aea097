"""The numbers in an archived conversation that do not fit its turns. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rag_assistant.records.archive import WholeConversation, WholeTurn

# Where a number stands, and what is wrong with it.
Contradiction = tuple[str, str]


def contradictions(whole: WholeConversation) -> Iterator[Contradiction]:
    """Yield what does not fit the turns of a conversation."""
    next_turn = len(whole.turns) + 1
    yield from _outside("context_start", whole.context_start, 1, next_turn)
    yield from _outside("view_start", whole.view_start, whole.context_start, next_turn)
    if whole.summary is not None:
        begin, end = whole.context_start, whole.view_start - 1
        for n, (first, last) in enumerate(whole.summary.covered):
            if not begin <= first <= last <= end:
                yield f"summary.covered[{n}]", f"[{first}, {last}] is no run of turns between {begin} and {end}"
            begin = last + 1
    for n, turn in enumerate(whole.turns):
        yield from _among_versions(f"turns[{n}]", turn)


def _among_versions(where: str, turn: WholeTurn) -> Iterator[Contradiction]:
    """Yield what is wrong with the numbers of a turn's answers, which count from 1."""
    answers = 1 + len(turn.others)
    yield from _outside(f"{where}.version", turn.version, 1, answers)
    missing = set(range(1, answers + 1)) - {turn.version, *turn.others}
    if missing:
        yield f"{where}.others", f"of {answers} answers, none has the version {min(missing)}"
    if turn.rating is not None:
        yield from _outside(f"{where}.rating.version", turn.rating.version, 1, answers)


def _outside(where: str, number: int, first: int, last: int) -> Iterator[Contradiction]:
    if not first <= number <= last:
        yield where, f"{number} is not from {first} to {last}"
