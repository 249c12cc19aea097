"""Run benchmarks by name; without one, those that need only the project and the shared data.

At the end each aim is printed with its result, and the table of docs/benchmarks.md is updated.
"""

import sys
from collections.abc import Callable

from bench import (
    aims,
    answers,
    documents,
    embedders,
    ingest,
    neighbours,
    office,
    page,
    pgvector,
    prepare,
    promises,
    quality,
    questions,
    routes,
    rows,
    scaling,
    scans,
    searches,
    side,
    start,
    stored,
)
from bench.aims import AIMS, Figures

PARTS: dict[str, Callable[[], Figures | None]] = {
    "prepare": prepare.main,
    "answers": answers.main,
    "side": side.main,
    "start": start.main,
    "ingest": ingest.main,
    "searches": searches.main,
    "stored": stored.main,
    "routes": routes.main,
    "promises": promises.main,
}
ON_REQUEST: dict[str, Callable[[], Figures | None]] = {
    "neighbours": neighbours.main,
    "embedders": embedders.main,
    "pgvector": pgvector.main,
    "questions": questions.main,
    "office": office.main,
    "documents": documents.main,
    "scans": scans.main,
    "page": page.main,
    "quality": quality.main,
    "rows": rows.main,
    "scaling": scaling.main,
}


def run(names: list[str]) -> None:
    """Run the named parts, or all that need only the project; print the aims they measure."""
    known = PARTS | ON_REQUEST
    for name in names:
        if name not in known:
            sys.exit(f'Unknown benchmark "{name}". Available: {", ".join(known)}.')
    taken: Figures = {}
    for name in names or PARTS:
        print(f"\n## {name}\n", flush=True)
        taken |= known[name]() or {}
        aims.keep(taken)
    decided = [aim for aim in AIMS if not names or aim.part in names]
    if decided:
        print(f"\n## Aims\n\n{aims.table(decided, taken)}", flush=True)


if __name__ == "__main__":
    run(sys.argv[1:])
