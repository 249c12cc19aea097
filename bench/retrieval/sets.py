"""Read the shared data sets: documents, questions with their history, and the right answers."""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

Exchange = tuple[str, str]


@dataclass(frozen=True)
class Asked:
    """A question as asked, with the exchanges before it, oldest first.

    ``relevant`` are the right documents with their grades. ``spans`` are places in the first of them that contain the
    answer, ``answers`` strings of which one must be found. ``rewrite`` is a human standalone version.
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
        """The common prefix of the ids of a conversation's questions."""
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
    """Return the available languages."""
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


def pool(collection: Collection, others: int) -> Collection:
    """Return a collection with all documents that a question needs, and that many others, in a fixed random choice."""
    needed = {name for asked in collection.questions for name in asked.relevant}
    rest = sorted(collection.documents.keys() - needed)
    random.Random(7).shuffle(rest)
    chosen = needed.union(rest[:others])
    return replace(collection, documents={name: one for name, one in collection.documents.items() if name in chosen})


def part(collection: Collection, documents: int) -> Collection:
    """Return that many documents of a collection, in a fixed random choice, with the questions about them."""
    chosen = set(random.Random(3).sample(sorted(collection.documents), documents))
    kept = {name: one for name, one in collection.documents.items() if name in chosen}
    return replace(
        collection, documents=kept, questions=[one for one in collection.questions if one.relevant.keys() <= chosen]
    )


def each(collection: Collection, step: int) -> Collection:
    """Return a collection with the questions of each ``step``-th conversation."""
    chosen = set(sorted({asked.conversation for asked in collection.questions})[::step])
    return replace(collection, questions=[one for one in collection.questions if one.conversation in chosen])


def cast_2021(others: Collection) -> Collection:
    """Return the questions of TREC CAsT 2021; the answers of its conversations are the passages, among ``others``.

    The answer to a conversation's last question is unknown, so that it isn't asked.
    """
    conversations: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in lines("cast/cast2021_queries.jsonl"):
        conversations[row["conversation"]].append(row)
    documents: dict[str, tuple[str, str]] = {}
    for number, rows in conversations.items():
        said = exchanges_of(max(rows, key=lambda row: len(row["history"]))["history"])
        documents |= {f"cast {number}_{turn}": ("", answer) for turn, (_, answer) in enumerate(said, 1) if answer}
    questions = [
        Asked(name, row["utterance"], {name: 1}, exchanges, row["rewrite"])
        for number, rows in conversations.items()
        for row in rows
        for exchanges in [exchanges_of(row["history"])]
        if (name := f"cast {number}_{len(exchanges) + 1}") in documents
    ]
    return Collection("cast 2021", documents | others.documents, questions)


def canard() -> Collection:
    """Return the questions of CANARD; the passages are the answers that its conversations quote from an article."""
    conversations: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in lines("canard/dev.jsonl"):
        conversations[row["_id"].rpartition("_")[0]].append(row)
    documents: dict[str, tuple[str, str]] = {}
    questions = []
    for name, rows in conversations.items():
        title, _, *said = max(rows, key=lambda row: len(row["history"]))["history"]
        answers = enumerate(said[1::2], 1)
        documents |= {f"{name}_{turn}": (title, answer) for turn, answer in answers if answer != "CANNOTANSWER"}
        for row in rows:
            before = tuple(zip(row["history"][2::2], row["history"][3::2], strict=False))
            place = f"{name}_{len(before) + 1}"
            if place in documents:
                questions.append(Asked(place, row["utterance"], {place: 1}, before, row["rewrite"]))
    return Collection("canard", documents, questions)


def exchanges_of(history: Iterable[Mapping[str, str]]) -> tuple[Exchange, ...]:
    """Return a history of messages as exchanges; unprompted assistant messages belong to an empty question."""
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
