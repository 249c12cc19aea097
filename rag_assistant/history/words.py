"""Which turns a model doesn't see, and why, in words: for the page, the receipt, the commands and the log. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from rag_assistant.history.fitting import FittedHistory
from rag_assistant.history.receipt import UNANSWERED, HistoryReceipt, LeftOut
from rag_assistant.records import QUOTES, Turn, runs_of

REASONS = {
    "turn_limit": "over the turn limit",
    "token_limit": "over the token limit",
    "filtered": "left out by smart memory",
    "excluded": "excluded",
    "purged": "in a completed confirmation",
    "cleared": "from before you started over",
    "summarised": "summarised",
    "failed": "without an answer",
    "erased": "erased",
}
# How many pieces of a run of turns are named individually.
MAX_PIECES = 5


def turns_by_reason(runs: Iterable[LeftOut]) -> dict[str, int]:
    """Return how many turns were left out, by reason."""
    counted: dict[str, int] = {}
    for run in runs:
        counted[run.reason] = counted.get(run.reason, 0) + run.turns
    return counted


def seen(kept_turns: int, left_out: Mapping[str, int]) -> str:
    """Return in words what a model sees of earlier turns: "5 of 7 earlier turns (2 over the turn limit)".

    Turns without an answer and erased ones don't count.
    """
    answered = {reason: count for reason, count in left_out.items() if reason not in UNANSWERED}
    total = kept_turns + sum(answered.values())
    why = "; ".join(f"{count} {REASONS.get(reason, reason)}" for reason, count in answered.items())
    return f"{kept_turns} of {total} earlier {'turn' if total == 1 else 'turns'}{f' ({why})' if why else ''}"


def turns_in_words(run: Mapping[str, Any], kept_turns: Sequence[int], runs: Iterable[Mapping[str, Any]]) -> str:
    """Return a run of left-out turns in words: "turns 2, 4 and 6 to 9".

    Turns in between that were sent, or are in another of the ``runs``, are left out. If that is too many pieces, they
    are counted: "12 of turns 1 to 40".
    """
    first, last = run["first_turn"], run["last_turn"]
    others = [(number, number) for number in kept_turns]
    others += [
        (one["first_turn"], one["last_turn"])
        for one in runs
        if one != run and one["turns"] == one["last_turn"] - one["first_turn"] + 1
    ]
    pieces, start = [], first
    for begin, end in sorted((begin, end) for begin, end in others if first <= begin and end <= last):
        pieces.append((start, begin - 1))
        start = max(start, end + 1)
    pieces = [(begin, end) for begin, end in [*pieces, (start, last)] if begin <= end]
    if sum(end - begin + 1 for begin, end in pieces) != run["turns"] or len(pieces) > MAX_PIECES:
        return f"{run['turns']:,} of turns {first} to {last}"
    return _listed(pieces)


def numbers_in_words(numbers: Sequence[int]) -> str:
    """Return turn numbers in words: "turns 2, 4 and 6 to 9"; many pieces are only counted."""
    if not numbers:
        return "none of the earlier turns"
    runs = runs_of(numbers)
    if len(runs) > MAX_PIECES:
        return f"{len(numbers):,} of turns {numbers[0]} to {numbers[-1]}"
    return _listed([(first, last) for first, last in runs])


def span_in_words(first: int, last: int) -> str:
    """Return a range of turns in words: "turn 1", "turns 1 and 2", "turns 1 to 3"."""
    return _listed([(first, last)])


def _listed(pieces: Sequence[tuple[int, int]]) -> str:
    words = [
        word
        for begin, end in pieces
        for word in ([str(begin), str(end)][: end - begin + 1] if end - begin < 2 else [f"{begin} to {end}"])
    ]
    listed = " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    return f"{'turns' if len(words) > 1 or ' ' in listed else 'turn'} {listed}"


def figures_in_words(fitted: FittedHistory, limit: int | None, *, with_recalled: bool) -> str:
    """Return in words what would be sent if the turns were left out, and whether some of them are quoted anyway."""
    receipt = fitted.receipt
    tokens = sum(receipt.tokens.values())
    return (
        f"The model would see {seen(receipt.turns_kept, turns_by_reason(receipt.left_out))}, about {tokens:,}"
        + (f" of {limit:,}" if limit else "")
        + " tokens with this question and its passages."
        + (" They include left-out turns that are quoted as they seem to be about it." if with_recalled else "")
    )


def sentence_about(undecided: Sequence[LeftOut], receipt: HistoryReceipt) -> str:
    """Return "5 of 7 earlier turns (2 over the turn limit)"; those without an answer and erased ones don't count."""
    turns = sum(run.turns for run in undecided)
    runs = [asdict(run) for run in receipt.left_out]
    places = "; ".join(turns_in_words(asdict(run), receipt.kept_turns, runs) for run in undecided)
    return f"This question would leave out {turns} earlier {'turn' if turns == 1 else 'turns'}: {places}."


def seen_by_model(turn: Turn) -> str | None:
    """Return what the model saw of the earlier turns, ``None`` where nothing was left out."""
    history = turn.history
    if history is None:
        return None
    left_out = history.get(
        "left_out", {history["reason"]: history["turns_dropped"]} if history["turns_dropped"] else {}
    )
    return seen(history["turns_kept"], left_out) if left_out.keys() - UNANSWERED else None


def view_in_words(turn: Turn) -> str | None:
    """Return the sentence about which earlier turns were seen, ``None`` if nothing was left out."""
    seen_turns = seen_by_model(turn)
    return None if seen_turns is None else view_sentence(seen_turns, turn.model)


def view_sentence(seen_turns: str, model: str | None) -> str:
    """Return the sentence about which earlier turns were seen; with quotes, no model sees any."""
    return f"In view: {seen_turns}." if model == QUOTES else f"The model saw {seen_turns}."


def shifts(turns: Iterable[Turn], before: Turn | None = None) -> frozenset[int]:
    """Return the numbers of the turns that announce what was left out: those where it differs in kind from the turn
    before.

    ``before`` is the turn before them. A full window is announced once, not with every answer.
    """
    previous = _kind_left_out(before) if before is not None else None
    sentences = []
    for turn in turns:
        if turn.history is None:
            continue
        kind = _kind_left_out(turn)
        if kind and kind != previous:
            sentences.append(turn.number)
        previous = kind
    return frozenset(sentences)


def _kind_left_out(turn: Turn) -> frozenset[str]:
    """Return why turns were left out for a turn, and whether a summary covered them."""
    history = turn.history
    if history is None or seen_by_model(turn) is None:
        return frozenset()
    reasons = history.get("left_out") or {history["reason"]: history["turns_dropped"]}
    return frozenset(reasons) - UNANSWERED | ({"with a summary"} if history.get("summary_sent") else frozenset())
