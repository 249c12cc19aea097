"""Run benchmarks by name; without one, those that need nothing but the project."""

from __future__ import annotations

import sys

from bench import (
    answers,
    documents,
    embedders,
    indexes,
    ingest,
    neighbours,
    page,
    pgvector,
    prepare,
    promises,
    quality,
    questions,
    rows,
    scaling,
    scans,
    start,
)

PARTS = {
    "prepare": prepare.main,
    "answers": answers.main,
    "start": start.main,
    "ingest": ingest.main,
    "promises": promises.main,
}
ON_REQUEST = {
    "neighbours": neighbours.main,
    "embedders": embedders.main,
    "indexes": indexes.main,
    "pgvector": pgvector.main,
    "questions": questions.main,
    "documents": documents.main,
    "scans": scans.main,
    "page": page.main,
    "quality": quality.main,
    "rows": rows.main,
    "scaling": scaling.main,
}


def run(names: list[str]) -> None:
    """Run the named parts, or all that need nothing but the project."""
    known = PARTS | ON_REQUEST
    for name in names or PARTS:
        if name not in known:
            sys.exit(f'Unknown benchmark "{name}". Available: {", ".join(known)}.')
        print(f"\n## {name}\n", flush=True)
        known[name]()


if __name__ == "__main__":
    run(sys.argv[1:])
