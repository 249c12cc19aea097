"""Questions that need a whole table, list or document: is the answer exact, and does it state its coverage?

Four parts by file: ``a``, ``b`` and ``c`` were in view while rules were made, ``d`` is the test; ``c`` and ``d`` are by
people who had not seen the rules. ``python -m bench.coverage a`` also prints the wrong answers in part ``a``.
"""

import csv
import io
import json
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.office import content_of, name_of, squeezed
from bench.retrieval.measures import mean
from rag_assistant.records import Question, Turn
from rag_assistant.services import Services
from rag_assistant.web import create_app

FILES = Path(__file__).with_name("coverage")
EXACT = ("count", "sum", "average", "extreme", "list")


def main(shown: Sequence[str] = ()) -> None:
    """Print for each half and kind of question how it is answered; for ``shown`` halves the wrong answers."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app({"DATA_DIR": folder, "SETTINGS_FILE": f"{folder}/none.json"})
        services: Services = app.extensions["assistant"]
        services.start()
        for path in sorted(FILES.glob("?/*")):
            services.library.accept(io.BytesIO(content_of(path)), name_of(path))
        while any(document.state not in ("ready", "failed") for document in services.documents.page(80)):
            time.sleep(0.1)
        print("| half | kind | questions | tells its coverage | exact | F1 of the rows |\n" + "|---" * 6 + "|")
        for half in ("a", "b", "c", "d"):
            print_half(services, half, half in shown)
        services.close()


def print_half(services: Services, half: str, is_shown: bool) -> None:
    """Ask the questions about one half of the files and print its rows."""
    figures: dict[str, list[tuple[float, float, float]]] = {}
    for one in json.loads((FILES / f"{half}.json").read_text(encoding="utf-8")):
        turn = services.assistant.wait(services.assistant.ask(Question(one["question"])).id)
        found = (float(tells_coverage(turn)), *exactness(one, turn, FILES / half / one["file"]))
        for kind in (one["kind"], *(["all exact"] if one["kind"] in EXACT else []), "all"):
            figures.setdefault(kind, []).append(found)
        if is_shown and (not found[0] or (one["kind"] in EXACT and found[1] < 1)):
            wanted = one.get("expect") or one.get("rows")
            print(f"\n{found} {one['question']} {wanted}\n{turn.search}\n{turn.answer}\n", flush=True)
    for kind, some in figures.items():
        told, exact, f1 = (mean([each[column] for each in some]) for column in range(3))
        is_exact = f"{exact:.3f} | {f1:.3f}" if kind in (*EXACT, "all exact") else " | "
        print(f"| {half} | {kind} | {len(some)} | {told:.3f} | {is_exact} |", flush=True)


def tells_coverage(turn: Turn) -> bool:
    """Return whether an answer states what it rests on, or that there is none."""
    return not turn.sources or bool(turn.search and turn.search.get("coverage"))


def exactness(one: Mapping[str, Any], turn: Turn, file: Path) -> tuple[float, float]:
    """Return whether an answer has the expected figure or exactly the expected rows, and the F1 of its rows."""
    if "expect" in one:
        note = squeezed(re.sub(r"This rests on .*", "", turn.answer.partition("\n>")[0]))
        right = float(all(re.search(rf"(?<![\d.,]){re.escape(wanted)}(?![\d.,]\d)", note) for wanted in one["expect"]))
        return right, right
    text = squeezed(turn.answer)
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
