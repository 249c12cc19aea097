"""Documents that disagree: how often it is found, and how often something is said where they don't.

``python -m bench.disagreements`` copies real documents with one figure, date, name or "not" changed in the sentence
that answers a question, and asks it with both in the library. The documents of one half chose the constants. Other
questions about the same document show what is said of a sentence that isn't asked about.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from msgspec.structs import replace as replace_struct

from bench.retrieval import sets
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.sets import Asked, Collection
from bench.retrieval.shelf import CHUNK_CHARS, CollectionShelf, shelf_of
from rag_assistant.conversations.model_profile import PASSAGES
from rag_assistant.extraction.formats.kinds import PLAIN
from rag_assistant.records import Disagreement, Source
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.chunking import chunk_document
from rag_assistant.retrieval.disagreements import PATTERNS, disagreements
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.postprocess import number_sources

KINDS = ("figure", "date", "name", "yes or no")
COPY = " copy "
PER_DOCUMENT = 3
DOCUMENTS_OF_COVIDQA, DOCUMENTS_OF_DOC2DIAL, OTHERS_OF_MTRAG = 40, 110, 200
# Every second question is asked of the unchanged documents, and of every third changed copy all others are asked.
STEP_UNCHANGED, STEP_OTHERS = 2, 3
EXCHANGES = 3
SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z\u00c4\u00d6\u00dc])|\n")
NUMBER_WORDS = dict(
    zip(
        "two three four five six seven eight nine ten".split(),
        "three five six seven nine ten four eleven twelve".split(),
        strict=True,
    )
)
FIGURE = re.compile(
    r"(?<![\w.,/-])[1-9]\d{0,2}(?:,\d{3})*(?![\w.,/-]*\d)(?=\s?%|\s[a-z\u00e4\u00f6\u00fc]{3}|\s(?!(?:Jan|Feb|M\u00e4r|Mar|Apr|Ma[iy]|Jun|Jul|Aug|Sep|O[ck]t|Nov|De[cz]))[A-Z][a-z]{2})"
    rf"|\b(?:{'|'.join(NUMBER_WORDS)})\b(?=\s[a-z]{{3}})"
)
YEAR = re.compile(r"(?<![\d.,/-])(?:1[5-9]|20)\d\d(?![\w%]|[.,/-]\d)")
NAME = re.compile(r"(?<=[a-z,] )[A-Z\u00c4\u00d6\u00dc][\w.-]+(?: [A-Z\u00c4\u00d6\u00dc][\w-]+)*")
VERB = {
    "en": re.compile(r" (is|was|are|were|can|must|may) (?!not\b)"),
    "de": re.compile(r" (ist|war|sind|waren|kann|muss|darf) (?!nicht\b)"),
}
NOT = {"en": "not", "de": "nicht"}
# A short statement with one verb becomes a question.
STATEMENT = {
    "en": re.compile(r"([A-Z][^,;:.?!()]{3,60}?) (is|was|are|were|can|must|may) (?!not\b)([^;:.?!()]{8,100})\."),
    "de": re.compile(
        r"((?:Der|Die|Das)[^,;:.?!()]{3,60}?) (ist|war|sind|waren|kann|muss|darf) (?!nicht\b)([^,;:.?!()]{8,100})\."
    ),
}


@dataclass(frozen=True)
class Changed:
    """A question with the text of its document, in which one value is changed from ``before`` to ``after``."""

    asked: Asked
    kind: str
    text: str
    before: str
    after: str


@dataclass(frozen=True)
class Case:
    """A question as searched; ``changed`` if two documents disagree about it and both are among the sources."""

    asked: Asked
    query: SearchQuery
    sources: tuple[Source, ...]
    changed: Changed | None = None

    @property
    def chose(self) -> bool:
        """Whether its document is of the half that chose the constants."""
        return int(next(iter(self.asked.relevant)).split("_")[0]) % 2 == 0

    @property
    def is_sent(self) -> bool:
        """Whether the passages have both values, in the document and in its copy."""
        if self.changed is None:
            return False
        (name,) = self.asked.relevant
        before = any(one.document == name and self.changed.before in one.text for one in self.sources)
        return before and any(COPY in one.document and self.changed.after in one.text for one in self.sources)


def changed_documents(collection: Collection, language: str) -> Iterator[Changed]:
    """Yield for each document and kind the first questions that such a change contradicts."""
    names = sorted(
        {
            name
            for asked in collection.questions
            for answer in asked.answers
            if asked.answers
            for name in NAME.findall(f"a {answer}")
        }
    )
    for document, (_, text) in sorted(collection.documents.items()):
        questions = [one for one in collection.questions if document in one.relevant]
        draw = random.Random(document)
        for kind in KINDS:
            found: list[Changed] = []
            for asked in questions if kind != "yes or no" else statements(text, document, language):
                if len(found) < PER_DOCUMENT and (change := _changed(asked, text, kind, language, names, draw)):
                    found.append(change)
            yield from found


def statements(text: str, document: str, language: str) -> Iterator[Asked]:
    """Yield short statements of a text as questions that yes or no answers."""
    for match in STATEMENT[language].finditer(text):
        if match.start() == 0 or text[match.start() - 2 : match.start() - 1] in ".!?\n":
            subject, verb, rest = match.groups()
            first, _, others = subject.partition(" ")
            plain = first.lower() if first in ("The", "A", "An", "This", "These", "Der", "Die", "Das") else first
            asked = f"{verb.capitalize()} {plain}{' ' if others else ''}{others} {rest}?"
            yield Asked(f"{document} {match.start()}", asked, {document: 1}, answers=(match[0],))


def _changed(
    asked: Asked, text: str, kind: str, language: str, names: Sequence[str], draw: random.Random
) -> Changed | None:
    answer = next((one for one in asked.answers if one in text), None)
    if answer is None:
        return None
    at = text.index(answer)
    start, end = next(one for one in _sentences(text) if one[0] <= at < one[1])
    sentence = text[start:end]
    # The answer itself, where it has such a value.
    if kind == "yes or no":
        verb = VERB[language].search(sentence)
        if verb is None:
            return None
        new = "cannot" if verb[1] == "can" else f"{verb[1]} {NOT[language]}"
        before, after, place = verb[0], f" {new} ", start + verb.start()
    else:
        pattern = {"figure": FIGURE, "date": YEAR, "name": NAME}[kind]
        match = next((one for one in pattern.finditer(text, start, end) if at <= one.start() < at + len(answer)), None)
        # In German every noun has a capital.
        if (
            match is None
            or (kind == "name" and language == "de" and " " not in match[0])
            or (kind == "figure" and YEAR.fullmatch(match[0]))
        ):
            return None
        before, place = match[0], match.start()
        after = _other(before, kind, names, text, draw)
    if text.count(before) > 5 or after in text:
        return None
    return Changed(asked, kind, text[:place] + after + text[place + len(before) :], before, after)


def _sentences(text: str) -> list[tuple[int, int]]:
    starts = [0, *(match.end() for match in SENTENCE_ENDS.finditer(text)), len(text)]
    return list(pairwise(starts))


def _other(value: str, kind: str, names: Sequence[str], text: str, draw: random.Random) -> str:
    if kind == "name":
        others = [one for one in names if one not in text and len(one.split()) == len(value.split())]
        return draw.choice(others or ["Weber"])
    if value in NUMBER_WORDS:
        return NUMBER_WORDS[value]
    plain = value.replace(",", "")
    other = int(plain) + draw.randint(2, 9) if kind == "date" or draw.random() < 0.5 else int(plain) * 2
    return f"{other:,}" if "," in value else str(other)


def searched(shelf: CollectionShelf, questions: Sequence[Asked]) -> list[Case]:
    """Return the questions with what the product finds for them."""
    cases = []
    for asked in questions:
        query = shelf.retriever.follow_up(asked.text, asked.exchanges[-EXCHANGES:])
        cases.append(Case(asked, query, number_sources(shelf.by_both(query, PASSAGES))))
    return cases


def with_conflicts(collection: Collection, language: str, embedder: CachedMiniLM) -> list[Case]:
    """Return the changed documents' questions as searched, each with one changed copy of its document."""
    cases = []
    changes = list(changed_documents(collection, language))
    with shelf_of(collection, embedder) as shelf:
        shelf.keywords.load()
        for number, change in enumerate(changes):
            (name,) = change.asked.relevant
            extracted = ExtractedText(change.text, PLAIN)
            copy = shelf.put(
                f"{name}{COPY}{number}",
                collection.documents[name][0],
                extracted,
                chunk_document(extracted, CHUNK_CHARS),
            )
            (case,) = searched(shelf, [change.asked])
            cases.append(replace(case, changed=change))
            shelf.documents.delete(copy)
    return cases


def told(case: Case, collection: Collection, question: str = "") -> tuple[Disagreement, ...]:
    """Return what the product says about a case; a copy is named as its document, with a number."""
    named = []
    for source in case.sources:
        name, copy, _ = source.document.partition(COPY)
        title = collection.documents[name][0] or name
        named.append(replace_struct(source, document=f"{title} v2" if copy else title))
    return disagreements(question or f"{case.query.context} {case.query.text}", tuple(named))


def is_found(case: Case, collection: Collection) -> bool:
    """Return whether the product names the changed value."""
    after = case.changed.after.strip().lower() if case.changed else ""
    values = (value.lower() for one in told(case, collection) for value in one.values)
    return any(value in after or after in value for value in values)


def about_others(cases: Sequence[Case], collection: Collection) -> list[bool]:
    """Return for questions whose answer is in another sentence than the changed one whether something is said."""
    results = []
    for case in cases:
        (name,) = case.asked.relevant
        text, changed = collection.documents[name][1], case.changed.text if case.changed else ""
        place = next((at for at, (one, other) in enumerate(zip(text, changed, strict=False)) if one != other), 0)
        sentence = next(one for one in _sentences(text) if one[0] <= place < one[1])
        for asked in collection.questions:
            if name in asked.relevant and not any(answer in text[slice(*sentence)] for answer in asked.answers):
                results.append(bool(told(case, collection, asked.text)))
    return results


def main() -> None:
    """Print for each set and half what is found by kind, and what is said though nothing disagrees."""
    if not sets.DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    embedder = CachedMiniLM()
    print("| set | half | " + " | ".join([*KINDS, "asked who"]) + " | unchanged | another sentence |")
    print("|---" * (len(KINDS) + 5) + "|")
    covidqa = sets.part(sets.covidqa(), DOCUMENTS_OF_COVIDQA)
    for collection, language in ((sets.xquad("en"), "en"), (sets.xquad("de"), "de"), (covidqa, "en")):
        changed = [one for one in with_conflicts(collection, language, embedder) if one.is_sent]
        unchanged = _unchanged(collection, embedder, STEP_UNCHANGED)
        for chose in (True, False):
            mine = [one for one in changed if one.chose is chose]
            found = {kind: [is_found(one, collection) for one in mine if _kind(one) == kind] for kind in KINDS}
            who = [one for one in mine if _kind(one) == "name" and PATTERNS["asks_who"].search(one.asked.text)]
            alarms = [bool(told(one, collection)) for one in unchanged if one.chose is chose]
            shown = [*found.values(), [is_found(one, collection) for one in who], alarms]
            others = about_others(mine[::STEP_OTHERS], collection)
            half = "chose" if chose else "held out"
            print(f"| {collection.name} | {half} | {' | '.join(map(_share, [*shown, others]))} |", flush=True)
    doc2dial = sets.part(sets.doc2dial(), DOCUMENTS_OF_DOC2DIAL)
    for collection in (sets.pool(sets.mtrag(), OTHERS_OF_MTRAG), doc2dial, sets.judged("cranfield")):
        alarms = [bool(told(one, collection)) for one in _unchanged(collection, embedder, 1)]
        print(f"| {collection.name} | held out |{' |' * (len(KINDS) + 1)} {_share(alarms)} | |", flush=True)


def _unchanged(collection: Collection, embedder: CachedMiniLM, step: int) -> list[Case]:
    with shelf_of(collection, embedder) as shelf:
        shelf.keywords.load()
        return searched(shelf, collection.questions[::step])


def _kind(case: Case) -> str:
    return case.changed.kind if case.changed else ""


def _share(results: Sequence[bool]) -> str:
    return f"{sum(results)} of {len(results)}"


if __name__ == "__main__":
    main()
