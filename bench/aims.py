"""What we set out for, in one list: each figure with its limit, and what stands between where it is missed.

``table`` makes of it what a run prints and what stands at the end of docs/benchmarks.md. A row of which a part of the
benchmarks took the figure keeps it in figures.json, so that one that takes hours stands there with its last figure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

FIGURES = Path(__file__).with_name("figures.json")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
TABLE = re.compile(r"(?<=<!-- aims -->\n).*?(?=<!-- /aims -->)", re.DOTALL)
# What no whole run does, since it takes an hour.
MILLION = "million"


@dataclass(frozen=True)
class Aim:
    """A row: what is measured by which part of the benchmarks, and the limit of each of its values.

    ``between`` says what stands between, and is shown where a limit is missed.
    """

    key: str
    part: str
    what: str
    limits: tuple[float, ...]
    unit: str
    between: str
    at_least: bool = False

    def met(self, values: Iterable[float]) -> list[bool]:
        """Return which of the values keep their limit."""
        pairs = zip(values, self.limits, strict=True)
        return [value >= limit if self.at_least else value <= limit for value, limit in pairs]


@dataclass(frozen=True)
class Figure:
    """What came of a row, and a note about it. Without values it was not taken, and the note says why."""

    values: tuple[float, ...] = ()
    note: str = ""
    day: str = ""


Figures = dict[str, Figure]

AIMS = (
    Aim(
        "answer", "side", "CPU of a 10-token answer with documents, new conversation: beside a plain prototype / the "
        "same without embedding the question", (1.1, 0.6), "x",
        "the question's vector, ten tokens that come one by one, and some 40 parts of at most 2 ms, of which most are "
        "what is committed and told before a word is shown",
    ),
    Aim(
        "answer_window", "side", "the same in a conversation with a full window: beside the prototype / LangChain",
        (1.4, 0.45), "x",
        "the same, the context of those that may lean on it, and looking for turns that are left out "
        "([in figures](#in-a-conversation))",
    ),
    Aim(
        "first_token", "side", "time added to the first token, new / in a conversation with a full window, beside a "
        "plain prototype", (1.0, 1.2), "x", "everything that is found and committed before the request is sent",
    ),
    Aim(
        "answers_a_second", "side", "answers a second, 10 / 50 at once, beside a plain prototype", (0.9, 0.9), "x",
        "the CPU of an answer: the model, the clients and the server share two cores", at_least=True,
    ),
    Aim(
        "further_token", "answers", "CPU of a further token at 20 a second, 10 / 100 streams", (0.14, 0.05), "ms",
        "receiving, committing and sending: [one thread](#in-a-conversation) does it for all streams",
    ),
    Aim(
        "late_100", "answers", "100 streams of 20 tokens a second: how late a token is, p99", (10,), "ms",
        "the tick, 5 ms with so many streams, and a core",
    ),
    Aim(
        "late_500", "answers", "500 streams: how late a token is, p50 / p99", (40, 120), "ms",
        "server, model and readers take all of two cores",
    ),
    Aim(
        "streams_2000", "answers", "of 2,000 streams, neither carried whole nor refused with 503 and when to come "
        "back", (0,), "streams", "a client that is refused before all of its request is read sees a broken connection",
    ),
    Aim(
        "scoped", "searches", "CPU of a search limited to half of 10,000 / 100,000 chunks, without the question's "
        "vector", (5, 25), "ms",
        "the cosines of half of the library, and three times as many hits of keywords as are kept",
    ),
    Aim(
        "hybrid", "searches", "CPU of a whole search of 10,000 / 100,000 chunks, without the question's vector",
        (4, 12), "ms", "half is the cosines, and their fusion with the keywords in Python; a fifth reads the passages",
    ),
    Aim(
        "hybrid_million", MILLION, "the same, 1,000,000 chunks", (40,), "ms",
        "comparing the bits of every vector",
    ),
    Aim(
        "recall", "searches", "of the 100 nearest of 10,000 / 100,000 chunks, how many the search finds that is used "
        "there", (0.95, 0.95), "x", "those that share fewer bits are not multiplied", at_least=True,
    ),
    Aim(
        "recall_million", MILLION, "the same of 1,000,000 chunks", (0.95,), "x",
        "more than 4,000 would have to be multiplied ([in figures](#vectors-in-memory-and-chroma))",
        at_least=True,
    ),
    Aim(
        "keywords_million", MILLION, "of which keywords, 1,000,000 chunks", (15,), "ms",
        "common words, which stand in a great many chunks",
    ),
    Aim(
        "stored", "stored", "stored for a turn beside its text, window 5 / 20 / none, turns 26 to 60", (3, 3, 3), "kB",
        "what the answer is told with: figures, sources, receipt",
    ),
    Aim(
        "stored_flat", "stored", "the same around turn 200, beside turns 26 to 60", (1.05, 1.05, 1.05), "x",
        "turns that come back beside the question, of which a long conversation has more",
    ),
    Aim(
        "routes", "routes", "CPU of the slowest page or API call at 100,000 conversations, 10,000 documents and a "
        "conversation of 1,000,000 messages: of those that read / that change something", (30, 30), "ms",
        "the templates of a page with many turns or rows; the many statements that erase a turn, whose words are "
        "overwritten in the index",
    ),
    Aim(
        "typing", "routes", "the same of a search as one types", (50,), "ms",
        "all titles are compared, two fifths of it; of words in many turns, the newest 2,000 turns are looked up",
    ),
    Aim(
        "start", "start", "second start: until /healthz / until ready", (0.7, 1.2), "s",
        "importing: ORM, framework and our own modules, and reading the embedding model",
    ),
    Aim(
        "memory", "start", "memory (PSS), idle / after 2,000 answers", (180, 200), "MB",
        "the ORM, the framework and our own modules have 37, the embedding model 30, gunicorn's second process 15 that "
        "it does not share",
    ),
    Aim(
        "cores_idle", "ingest", "cores that embedding takes while nobody asks, of two", (1.8,), "cores",
        "each batch waits for its commit", at_least=True,
    ),
    Aim("cores_busy", "ingest", "the same while somebody asks", (1,), "cores", "a question does not end the passage"),
    Aim(
        "found_by_words", "ingest", "chunks a second that words find, without reading the file", (2000,), "a second",
        "stemming, FTS5's index and the commit", at_least=True,
    ),
)  # fmt: skip


def table(aims: Iterable[Aim], figures: Mapping[str, Figure]) -> str:
    """Return the rows in Markdown, each with its aim, its figure and whether it is met."""
    rows = [_row(aim, figures.get(aim.key) or not_taken(f"it needs `python -m bench {aim.part}`")) for aim in aims]
    return "\n".join(["| what | aim | figure | met |", "|---|---|---|---|", *rows]) + "\n"


def _row(aim: Aim, figure: Figure) -> str:
    least = "at least " if aim.at_least else ""
    head = f"| {aim.what} | {least}{_joined(aim.limits)} {aim.unit} |"
    if not figure.values:
        return f"{head} | not taken: {figure.note} |"
    met = aim.met(figure.values)
    said = "yes" if all(met) else " / ".join("yes" if one else "no" for one in met) + f": {aim.between}"
    told = ", ".join(filter(None, (figure.note, figure.day)))
    return f"{head} {_joined(figure.values)} {aim.unit}{f' ({told})' if told else ''} | {said} |"


def _joined(values: Iterable[float]) -> str:
    """Return values with three digits that count."""
    return " / ".join(f"{float(f'{value:.3g}'):,g}" for value in values)


def not_taken(why: str) -> Figure:
    """Return that a row was not taken."""
    return Figure(note=why)


def without(part: str, why: str) -> Figures:
    """Return that no row of a part was taken."""
    return {aim.key: not_taken(why) for aim in AIMS if aim.part == part}


def kept() -> Figures:
    """Return the last figure of each row, with the day on which it was taken."""
    rows = json.loads(FIGURES.read_text())
    return {key: Figure(tuple(row["values"]), row["note"], row["day"]) for key, row in rows.items()}


def keep(figures: Figures) -> None:
    """Keep what was taken, and write the table of docs/benchmarks.md anew."""
    today = date.today().isoformat()
    taken = {key: Figure(one.values, one.note, today) for key, one in figures.items() if one.values}
    lines = [f"{json.dumps(key)}: {json.dumps(asdict(one))}" for key, one in sorted((kept() | taken).items())]
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    write_page()


def write_page() -> None:
    """Write the table of docs/benchmarks.md."""
    PAGE.write_text(TABLE.sub(lambda _: table(AIMS, kept()), PAGE.read_text()))


if __name__ == "__main__":
    write_page()
