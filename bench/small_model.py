"""Questions about the office files to a real small model: right, marked when wrong, how fast, with how many requests?

``python -m bench.small_model FILE.gguf a b 2 NAME:SETTING=VALUE,... NAME: ...`` asks each arm every second question of
the halves, by turns, so that what else the machine does slows all alike. See bench/office.py for the halves.
"""

import io
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from bench.office import FILES, content_of, name_of, squeezed
from rag_assistant.conversations.summary_lines import MODEL_LEAD
from rag_assistant.records import Question
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.gguf import carried_gguf

DEFAULT_ARMS = ("before:SMALL_MODEL=off", "after:")
# An answer that takes longer than three minutes has failed: some would never end.
SAME = {"TEMPERATURE": "0", "ANSWER_TIMEOUT_SECONDS": "180"}
DENIAL = re.compile(r"\b(?:not|no|cannot|unable|don't|doesn't|isn't|nothing|none)\b", re.IGNORECASE)


class Row(Struct):
    """What was seen of an arm's answers. Seconds are None where no text came."""

    right: int = 0
    refused: int = 0
    wrong: int = 0
    marked: int = 0
    cited: int = 0
    failed: int = 0
    quoted: int = 0
    requests: int = 0
    first: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)


def main(arguments: Sequence[str] = ()) -> None:
    """Print a row for each arm."""
    path = next((one for one in arguments if one.endswith(".gguf")), str(carried_gguf()))
    arms = [one for one in arguments if ":" in one and one != path] or DEFAULT_ARMS
    halves = [one for one in arguments if one in ("a", "b")] or ["b"]
    step = int(next((one for one in arguments if one.isdigit()), 1))
    with tempfile.TemporaryDirectory() as folder:
        running = {}
        for arm in arms:
            name, _, settings = arm.partition(":")
            environment = dict(one.split("=", 1) for one in settings.split(",") if one)
            running[name] = started(f"{folder}/{name}", {"LOCAL_MODEL": path} | SAME | environment)
        rows = {name: Row() for name in running}
        for half in halves:
            for one in json.loads((FILES / f"{half}.json").read_text(encoding="utf-8"))[::step]:
                for name, services in running.items():
                    ask(services, one, rows[name], name)
        print_rows(rows)
        for services in running.values():
            services.close()


def started(folder: str, environment: dict[str, str]) -> Services:
    """Return running services with the office files."""
    app = create_app(environment | {"DATA_DIR": folder, "SETTINGS_FILE": f"{folder}/none.json"})
    services: Services = app.extensions["assistant"]
    services.start()
    for path in sorted(FILES.glob("?/*")):
        services.library.accept(io.BytesIO(content_of(path)), name_of(path))
    while any(document.state not in ("ready", "failed") for document in services.documents.page(50)):
        time.sleep(0.1)
    return services


def ask(services: Services, one: Mapping[str, Any], row: Row, name: str) -> None:
    """Ask a question, and add what is seen to a row."""
    began = time.monotonic()
    turn = services.assistant.ask(Question(one["question"]))
    for event in services.assistant.follow(turn.id):
        if event is not None and event.name == "token":
            row.first.append(time.monotonic() - began)
            break
    turn = services.assistant.wait(turn.id)
    row.end.append(time.monotonic() - began)
    quoted, lead, answer = turn.answer.rpartition(MODEL_LEAD)
    verdict = verdict_of(one, answer)
    is_marked = bool(turn.notes) or any(source.doubts for source in turn.sources)
    row.right += verdict == "right"
    row.refused += verdict == "refused"
    row.wrong += verdict == "wrong"
    row.marked += verdict == "wrong" and is_marked
    row.cited += bool(re.search(r"\[\d", answer))
    row.quoted += bool(lead) and verdict_of(one, quoted) == "right"
    row.failed += turn.status != "completed"
    row.requests += (turn.usage or {}).get("requests", 0)
    seen = {"arm": name, "question": one["question"], "verdict": verdict, "seconds": round(row.end[-1], 1)}
    seen |= {"answer": turn.answer[-500:], "notes": turn.notes, "status": turn.status}
    print(json.dumps(seen), file=sys.stderr)


def verdict_of(one: Mapping[str, Any], answer: str) -> str:
    """Return whether an answer has every expected value and nothing forbidden, says that there is none, or is wrong."""
    text, wanted = squeezed(answer), one.get("value") or one["expect"]
    holds = [re.search(rf"(?<![\w.,]){re.escape(squeezed(value))}(?![\w]|[.,]\d)", text) for value in wanted]
    if wanted and all(holds) and not any(squeezed(other) in text for other in one.get("not", ())):
        return "right"
    return "refused" if DENIAL.search(text) and not any(holds) else "wrong"


def print_rows(rows: Mapping[str, Row]) -> None:
    """Print a table of all arms."""
    print("| arm | right | says no | wrong, marked | cites | quotes right | failed | first / last word, s | requests |")
    print("|---" * 9 + "|")
    for name, row in rows.items():
        first, end = statistics.median(row.first or [0]), statistics.median(row.end)
        print(
            f"| {name} | {row.right} of {len(row.end)} | {row.refused} | {row.marked} of {row.wrong} | {row.cited} "
            f"| {row.quoted} | {row.failed} | {first:.1f} / {end:.1f} | {row.requests / len(row.end):.2f} |"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
