"""Read the shared data sets: documents, questions with what was said before them, and what is right."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

Exchange = tuple[str, str]


@dataclass(frozen=True)
class Asked:
    """A question as it was asked, with the exchanges before it, the oldest first.

    ``relevant`` are the right documents with their grades. ``spans`` are places in the first of them that hold the
    answer, ``answers`` strings of which one must be found. ``rewrite`` is what a person made of it to stand alone.
    """

    id: str
    text: str
    relevant: Mapping[str, int]
    exchanges: tuple[Exchange, ...] = ()
    rewrite: str = ""
    answers: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def conversation(self) -> str:
        """What the ids of all questions of a conversation begin with."""
        return self.id.rpartition("<::>")[0] or self.id.rpartition("_")[0]


@dataclass(frozen=True)
class Collection:
    """Documents, given as (title, text) by id, and questions about them."""

    name: str
    documents: dict[str, tuple[str, str]]
    questions: list[Asked] = field(default_factory=list)


def judged(name: str) -> Collection:
    """Return a collection with graded judgements: cranfield or cacm."""
    relevant = _judgements(name)
    questions = [
        Asked(row["_id"], row["text"], relevant[row["_id"]])
        for row in lines(f"{name}/queries.jsonl")
        if row["_id"] in relevant
    ]
    return Collection(name, _documents(f"{name}/corpus.jsonl"), questions)


def xquad(language: str) -> Collection:
    """Return one language of XQuAD; each document is a paragraph."""
    questions = [
        Asked(row["_id"], row["text"], {row["gold_doc"]: 1}, answers=tuple(row["answers"]))
        for row in lines(f"xquad/queries_{language}.jsonl")
    ]
    return Collection(f"xquad {language}", _documents(f"xquad/corpus_{language}.jsonl"), questions)


def xquad_languages() -> list[str]:
    """Return the languages that are there."""
    return sorted(path.stem.removeprefix("corpus_") for path in (DATA / "xquad").glob("corpus_*.jsonl"))


def covidqa() -> Collection:
    """Return questions over long papers, with the gold answers' text."""
    questions = [
        Asked(row["_id"], row["text"], {row["gold_doc"]: 1}, answers=tuple(row["answers"]))
        for row in lines("covidqa/queries.jsonl")
    ]
    return Collection("covidqa", _documents("covidqa/corpus.jsonl"), questions)


def mtrag() -> Collection:
    """Return questions of conversations over the passages of two domains in one."""
    relevant = _judgements("mtrag")
    documents = _documents("mtrag/corpus_clapnq.jsonl") | _documents("mtrag/corpus_govt.jsonl")
    questions = [
        Asked(row["_id"], row["lastturn"], relevant[row["_id"]], exchanges_of(row["history"]), row["rewrite"])
        for row in lines("mtrag/queries.jsonl")
        if row["_id"] in relevant
    ]
    return Collection("mtrag", documents, questions)


def doc2dial() -> Collection:
    """Return turns of dialogues over long documents, with the gold spans."""
    questions = [
        Asked(
            row["_id"],
            row["utterance"],
            {row["gold_doc"]: 1},
            exchanges_of(row["history"]),
            spans=tuple(
                (start, start + len(text)) for start, text in zip(row["gold_start"], row["gold_text"], strict=True)
            ),
        )
        for row in lines("doc2dial/queries.jsonl")
    ]
    return Collection("doc2dial", _documents("doc2dial/corpus.jsonl"), questions)


def exchanges_of(history: Iterable[Mapping[str, str]]) -> tuple[Exchange, ...]:
    """Return a history of messages as exchanges; what the assistant says unasked belongs to an empty question."""
    exchanges: list[Exchange] = []
    for message in history:
        if message["role"] == "user":
            exchanges.append((message["content"], ""))
        elif exchanges and not exchanges[-1][1]:
            exchanges[-1] = (exchanges[-1][0], message["content"])
        else:
            exchanges.append(("", message["content"]))
    return tuple(exchanges)


def lines(path: str) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in (DATA / path).read_text(encoding="utf-8").split("\n") if line]


def _documents(path: str) -> dict[str, tuple[str, str]]:
    return {row["_id"]: (row.get("title") or "", row["text"]) for row in lines(path)}


def _judgements(name: str) -> dict[str, dict[str, int]]:
    """Return the relevant documents of each question, with their grades."""
    relevant: dict[str, dict[str, int]] = {}
    for line in (DATA / name / "qrels.tsv").read_text().splitlines()[1:]:
        *_, query, document, grade = line.split("\t")
        relevant.setdefault(query, {})[document] = int(grade)
    return relevant
