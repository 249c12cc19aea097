"""Measure an answer to a rated question, compare it with another one, and describe that in words. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from rag_assistant.records import Source, Turn
from rag_assistant.retrieval.claims import CITATION
from rag_assistant.retrieval.tokenize import content_stems, search_words, words_of

VERDICTS = ("worse", "failed", "better", "same")
WORSE = {
    "found": "The passages it needs are no longer found.",
    "cited": "It no longer cites them.",
    "claims": "More citations are doubtful.",
    "answer": "It contains less of the right answer.",
}


def figures_in_words(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the measurements in words: ``found``, ``cited``, ``doubts`` and ``answer``, with an arrow for changes."""
    before, now = _measured(result["before"]), _measured(result["now"])
    return {
        name: shown if shown == before[name] else f"{before[name]} \N{RIGHTWARDS ARROW} {shown}"
        for name, shown in now.items()
    }


def _measured(score: Mapping[str, Any]) -> dict[str, str]:
    rank, cited, share = score["found"], score["cited"], score["share"]
    return {
        "found": "-" if rank is None else f"#{rank}" if rank else "no",
        "cited": "-" if cited is None else "yes" if cited else "no",
        "doubts": str(score["doubts"]),
        "answer": "-" if share is None else f"{share:.0%}",
    }


def what_is_worse(checks: Mapping[str, str]) -> str:
    """Return in sentences what got worse about an answer, empty if nothing did."""
    return " ".join(sentence for check, sentence in WORSE.items() if checks.get(check) == "worse")


def count_verdicts(verdicts: Iterable[str]) -> dict[str, int]:
    """Return the number of verdicts of each kind, worst first; kinds without any are left out."""
    verdicts = list(verdicts)
    return {kind: verdicts.count(kind) for kind in VERDICTS if kind in verdicts}


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return a count of verdicts in words: "1 worse, 3 same"."""
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


Verdict = Literal["better", "same", "worse"]

# Two passages of one document are the same if the shorter one shares this part of its words: documents may be chunked
# differently, or replaced by a newer version.
MIN_SAME_PASSAGE = 0.5
# The expected answer is present with all of its numbers and this share of its words. For a good answer, which may be
# worded differently, less is enough.
MIN_RIGHT = 0.8
MIN_KEPT = 0.5


class Score(Struct, frozen=True):
    """The measurements of an answer; ``None`` if something can't be measured.

    ``found`` is the rank of the first passage that a good answer cited, or that contains the expected answer; 0: there
    is none. ``cited``: the answer cites one of those. ``doubts`` is the number of doubtful citations. ``share`` is how
    many of the expected answer's words it has, or of the good answer's, and ``answer`` whether that is enough.
    """

    found: int | None
    cited: bool | None
    doubts: int
    share: float | None
    answer: bool | None


def score_of(rated: Turn, answered: Turn) -> Score:
    """Return the score of an answer against a rated one: the same one, or a later one to the same question."""
    is_good = rated.rating is not None and rated.rating.rating == "up"
    right = rated.rating.right_answer if rated.rating else None
    wanted = [source for source in rated.sources if source.cited and is_good]
    rank = cited = share = enough = None
    if wanted or right:
        fitting = [
            source
            for source in answered.sources
            if _holds(source.text, right) or any(_is_same(source, one) for one in wanted)
        ]
        rank = fitting[0].n if fitting else 0
        cited = any(one.cited for one in fitting)
    if right:
        share = _share(right, answered.answer)
        has_numbers = _numbers(right) <= _numbers(answered.answer)
        enough = _holds(answered.answer, right) or (share >= MIN_RIGHT and has_numbers)
    elif is_good:
        share = _share(rated.answer, answered.answer)
        enough = share >= MIN_KEPT
    return Score(rank, cited, sum(len(one.doubts) for one in answered.sources), share, enough)


def compare(before: Score, now: Score) -> dict[str, Verdict]:
    """Return for each check whether it is better, the same or worse; unmeasured ones are left out."""
    pairs = zip(WORSE, _held(before), _held(now), strict=True)
    return {
        name: "worse" if one > other else "better" if one < other else "same"
        for name, one, other in pairs
        if one is not None and other is not None
    }


def _held(score: Score) -> tuple[int | None, ...]:
    """Return for each check a value, more is better. The rank of a found passage doesn't count."""
    return score.found and 1, score.cited, -score.doubts, score.answer


def verdict_of(checks: Mapping[str, Verdict]) -> Verdict:
    """Return the verdict of all checks: one that is worse outweighs what is better."""
    return next((one for one in ("worse", "better") if one in checks.values()), "same")


def _is_same(one: Source, other: Source) -> bool:
    if one.document_id != other.document_id and one.document != other.document:
        return False
    words, others = _stems(one.text), _stems(other.text)
    return one.text == other.text or len(words & others) > MIN_SAME_PASSAGE * min(len(words), len(others))


def _holds(text: str, right: str | None) -> bool:
    """Return whether a text contains the expected answer, ignoring case, blanks and punctuation."""
    return bool(right) and f" {_plain(right or '')} " in f" {_plain(text)} "


def _share(wanted: str, text: str) -> float:
    """Return the share of a text's words in another, from 0 to 1; 1 if it contains it verbatim."""
    words = _stems(wanted)
    if _holds(text, wanted):
        return 1.0
    return round(len(words & _stems(text)) / len(words), 2) if words else 0.0


def _plain(text: str) -> str:
    return words_of(CITATION.sub(" ", text))


def _stems(text: str) -> frozenset[str]:
    return content_stems(CITATION.sub(" ", text))


def _numbers(text: str) -> set[str]:
    return {word for word in search_words(CITATION.sub(" ", text)) if any(map(str.isdigit, word))}
