"""All aims in one list: each figure with its limit, and the reason if it is missed.

``table`` produces the output of a run and the end of docs/benchmarks.md. Figures are kept in figures.json, so that slow
benchmarks keep their last result.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

FIGURES = Path(__file__).with_name("figures.json")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
TABLE = re.compile(r"(?<=<!-- aims -->\n).*?(?=<!-- /aims -->)", re.DOTALL)


@dataclass(frozen=True)
class Aim:
    """A row: which part measures it, and the limit of each value.

    ``between`` is the reason, shown if a limit is missed.
    """

    key: str
    part: str
    what: str
    limits: tuple[float, ...]
    unit: str
    between: str
    at_least: bool = False

    def met(self, values: Iterable[float]) -> list[bool]:
        """Return which of the values are within their limits."""
        pairs = zip(values, self.limits, strict=True)
        return [value >= limit if self.at_least else value <= limit for value, limit in pairs]


@dataclass(frozen=True)
class Figure:
    """The result of a row, and a note about it. Without values it was not measured, and the note says why."""

    values: tuple[float, ...] = ()
    note: str = ""
    day: str = ""


Figures = dict[str, Figure]

AIMS = (
    Aim(
        "answer", "side", "CPU of an answer beside LangChain's, new / in a conversation with a full window",
        (0.8, 1.0), "x", "the question's vector, and what is committed and told before a word is shown",
    ),
    Aim(
        "first_token", "side", "time added to the first token, one at a time, p50, new / in a conversation", (20, 30),
        "ms", "everything that is found and committed before the request is sent",
    ),
    Aim(
        "late_200", "answers", "200 streams of 20 tokens a second in one process: how late a token is, p99", (150,),
        "ms", "server, model and readers share two cores",
    ),
    Aim(
        "lost", "answers", "of 200 / 500 / 2,000 such streams, neither carried whole nor refused with 503 and when to "
        "come back", (0, 0, 0), "streams",
        "a client that is refused before its request is read sees a broken connection",
    ),
    Aim(
        "hybrid", "searches", "a whole search of 10,000 / 100,000 chunks, without the question's vector", (15, 30),
        "ms", "keywords, the request to the index, and their fusion",
    ),
    Aim("scoped", "searches", "the same in half of them", (15, 30), "ms", "hits outside the half are thrown away"),
    Aim(
        "recall", "searches", "of the 100 nearest of 10,000 / 100,000 chunks, how many the search finds", (0.95, 0.95),
        "x", "the index is approximate", at_least=True,
    ),
    Aim(
        "start", "start", "second start: until /healthz / until ready", (1, 2.5), "s",
        "importing the libraries, and reading the embedding model",
    ),
    Aim("memory", "start", "memory of all processes, idle (PSS)", (350,), "MB", "libraries, model, index"),
    Aim(
        "ingest", "ingest", "paragraphs that are embedded in a CPU second", (25,), "a second", "the embedding model",
        at_least=True,
    ),
    Aim("stored", "stored", "stored for a turn beside its text, default window", (8,), "kB", "the receipt"),
    Aim(
        "stored_flat", "stored", "the same around turn 200, beside turns 26 to 60", (1.05,), "x",
        "turns that come back beside the question, of which a long conversation has more",
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
    """Return values with three significant digits."""
    return " / ".join(f"{float(f'{value:.3g}'):,g}" for value in values)


def not_taken(why: str) -> Figure:
    """Return a figure that was not measured."""
    return Figure(note=why)


def without(part: str, why: str) -> Figures:
    """Return that no row of a part was measured."""
    return {aim.key: not_taken(why) for aim in AIMS if aim.part == part}


def kept() -> Figures:
    """Return the last figure of each row, with its date."""
    rows = json.loads(FIGURES.read_text())
    return {key: Figure(tuple(row["values"]), row["note"], row["day"]) for key, row in rows.items()}


def keep(figures: Figures) -> None:
    """Store the figures, and update the table of docs/benchmarks.md."""
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
