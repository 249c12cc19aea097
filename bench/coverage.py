"""Questions that need a whole table, list or document: is the answer exact, and does it state its coverage?

Eight parts by file: ``a``, ``b`` and ``c`` were in view while rules were made; ``c``, ``d``, ``e``, ``g`` and ``h`` are
by people who had not seen the rules, and ``queries.json`` has a language model's queries for these five. The author of
the rules wrote ``f`` before the last of them, and computed its answers in plain Python. The files of ``g`` and ``h``
are added after the others were asked. ``python -m bench.coverage a`` also prints the wrong answers of ``a``.
"""

import csv
import io
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.office import content_of, name_of, squeezed
from bench.retrieval.measures import mean
from rag_assistant.conversations.model_profile import PASSAGES
from rag_assistant.records import Question, Turn
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.postprocess import number_sources
from rag_assistant.retrieval.quotes import Quote, SourceTable
from rag_assistant.retrieval.table_query import TableQuery
from rag_assistant.retrieval.table_words import needs_everything
from rag_assistant.services import Services
from rag_assistant.web import create_app

FILES = Path(__file__).with_name("coverage")
EXACT = ("count", "sum", "average", "extreme", "list", "lookup", "group", "distinct", "none")
# What precedes the first line of our own that says what was done with which rows.
CAPTION = re.compile(r"^(?!>).*\b(?:rows|items)\b.*$", re.MULTILINE)
ONLY_FOUND = "Nothing was computed."


def main(shown: Sequence[str] = ()) -> None:
    """Print for each half and kind of question how it is answered; for ``shown`` halves the wrong answers."""
    with library("[a-f]/*") as services:
        print("| half | kind | questions | tells its coverage | exact | F1 of the rows | wrong |\n" + "|---" * 7 + "|")
        for half in ("a", "b", "c", "d", "e", "f"):
            print_half(services, half, half in shown)
        for half in ("c", "d", "e"):
            print_queries(services, half)
        for half in ("g", "h"):
            add(services, f"{half}/*")
            print_half(services, half, half in shown)
    for half in ("g", "h"):  # Each in a library of its own.
        with library(f"{half}/*") as services:
            print_queries(services, half)


@contextmanager
def library(files: str) -> Iterator[Services]:
    """Give the services of a library with the files of a pattern."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app({"DATA_DIR": folder, "SETTINGS_FILE": f"{folder}/none.json"})
        services: Services = app.extensions["assistant"]
        services.start()
        add(services, files)
        yield services
        services.close()


def add(services: Services, files: str) -> None:
    """Add the files of a pattern to the library and wait until they are ready."""
    for path in sorted(FILES.glob(files)):
        services.library.accept(io.BytesIO(content_of(path)), name_of(path))
    while any(document.state not in ("ready", "failed") for document in services.documents.page(90)):
        time.sleep(0.1)


def print_queries(services: Services, half: str) -> None:
    """Print how many questions of a half the recorded queries of a language model answer, and those of the rules.

    The model was given the product's requests (``table_request``), and nothing else.
    """
    queries = json.loads((FILES / "queries.json").read_text(encoding="utf-8"))
    figures: dict[str, list[tuple[float, ...]]] = {"rules": [], "queries": [], "queries, then rules": []}
    for one in json.loads((FILES / f"{half}.json").read_text(encoding="utf-8")):
        if one["kind"] not in EXACT:
            continue
        question, file = one["question"], FILES / half / one["file"]
        sources = number_sources(services.retriever.find(question, PASSAGES)[0])
        is_recognised = needs_everything(question, [source.text for source in sources])
        computed = services.retriever.sources.computed(SearchQuery(question), sources)
        by_rules = computed[0] if len(computed) == 1 else None
        given = queries.get(question) if is_recognised else None
        by_query = queried(services.retriever.sources.tables(sources), **given) if given else None
        for name, quote in zip(figures, (by_rules, by_query, by_query or by_rules), strict=True):
            text = "" if quote is None else "\n> ".join([quote.note, *(row.text for row in quote.sentences)])
            is_list = float(one["kind"] == "list")
            exact, f1 = exactness(one, text, file)
            figures[name].append((exact, f1 * is_list, is_list, is_wrong(text, exact)))
    for name, some in figures.items():
        exact, f1, lists, wrong = (sum(each[column] for each in some) for column in range(4))
        print(
            f"| {half} | {name} | {len(some)} | | {exact / len(some):.3f} | {f1 / lists:.3f} | {wrong:.0f} |",
            flush=True,
        )


def queried(tables: Sequence[SourceTable], documents: Sequence[str], reply: str) -> Quote | None:
    """Return the result of a recorded query of one of the tables, which were those of ``documents``."""
    query = msgspec.json.decode(reply, type=TableQuery, strict=False)
    if not query.table:
        return None
    document, before = documents[query.table - 1], documents[: query.table - 1]
    of_document = [one for one in tables if one.document == document][before.count(document) :]
    return of_document[0].queried(query) if of_document else None


def print_half(services: Services, half: str, is_shown: bool) -> None:
    """Ask the questions about one half of the files and print its rows."""
    figures: dict[str, list[tuple[float, ...]]] = {}
    for one in json.loads((FILES / f"{half}.json").read_text(encoding="utf-8")):
        turn = asked(services, [*one.get("before", ()), one["question"]])
        exact, f1 = exactness(one, turn.answer, FILES / half / one["file"])
        found = float(tells_coverage(turn)), exact, f1, is_wrong(turn.answer, exact)
        for kind in (one["kind"], *(["all exact"] if one["kind"] in EXACT else []), "all"):
            figures.setdefault(kind, []).append(found)
        if is_shown and (not found[0] or (one["kind"] in EXACT and found[1] < 1)):
            wanted = one.get("expect") or one.get("rows")
            print(f"\n{found} {one['question']} {wanted}\n{turn.search}\n{turn.answer}\n", flush=True)
    for kind, some in figures.items():
        told, exact, f1, wrong = (mean([each[column] for each in some]) for column in range(4))
        is_exact = f"{exact:.3f} | {f1:.3f} | {wrong * len(some):.0f}" if kind in (*EXACT, "all exact") else " | | "
        print(f"| {half} | {kind} | {len(some)} | {told:.3f} | {is_exact} |", flush=True)


def asked(services: Services, questions: Sequence[str]) -> Turn:
    """Ask questions in one conversation and return the last turn."""
    conversation_id = None
    for question in questions:
        turn = services.assistant.wait(services.assistant.ask(Question(question, conversation_id)).id)
        conversation_id = turn.conversation_id
    return turn


def tells_coverage(turn: Turn) -> bool:
    """Return whether an answer states what it rests on, that its rows were only found, or that there is none."""
    return not turn.sources or bool(turn.search and turn.search.get("coverage")) or ONLY_FOUND in turn.answer


def is_wrong(answer: str, exact: float) -> float:
    """Return whether an answer looks computed and isn't exact."""
    caption = CAPTION.search(answer)
    return float(caption is not None and not exact and ONLY_FOUND not in caption[0])


def exactness(one: Mapping[str, Any], answer: str, file: Path) -> tuple[float, float]:
    """Return whether an answer has the expected figure or exactly the expected rows, and the F1 of its rows."""
    if "expect" in one:
        note = squeezed(re.sub(r"This rests on .*|.*Nothing was computed\..*", "", answer.partition("\n>")[0]))
        figures = [squeezed(wanted) for wanted in one["expect"]]
        right = float(all(re.search(rf"(?<![\d.,]){re.escape(one)}(?![\d.,]\d)", note) for one in figures))
        return right, right
    if one["kind"] == "none":
        return (1.0 - is_wrong(answer, 0.0),) * 2
    text = squeezed(answer)
    shown = {key for key in keys_of(file) if squeezed(key) in text}
    wanted = {key for key in keys_of(file) for row in one.get("rows", ()) if row in key}
    f1 = 2 * len(shown & wanted) / ((len(shown) + len(wanted)) or 1)
    return float(shown == wanted), f1


def keys_of(file: Path) -> list[str]:
    """Return the name of each row or item of a file."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".csv":
        return [row[0] for row in csv.reader(io.StringIO(text), delimiter=";" if ";" in text else ",")][1:]
    rows = re.findall(r"^\| (?!---)(.*?) \|.*\n(?!\| ---)", text, re.M)
    return rows + re.findall(r"^(?:[-*]|\d+\.) (.*)$", text, re.M)


if __name__ == "__main__":
    main(sys.argv[1:])
