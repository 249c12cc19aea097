"""A library of 100,000 chunks: the shared sets among the manuals of Debian packages. Does the product still say when it
has no answer, and is an answer still found?

``python -m bench.retrieval.large read`` reads the manuals with the product's own readers and embeds their chunks, in an
hour or two of one core; ``python -m bench.retrieval.large`` asks. The packages are unpacked in ``bench/results``:
``apt-get download NAME`` and ``dpkg-deb -x FILE bench/results/.packages/NAME``.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.retrieval import sets
from bench.retrieval.cache import FILE, CachedMiniLM
from bench.retrieval.scores import measures_of, score
from bench.retrieval.sets import Asked, Collection
from bench.retrieval.shelf import CHUNK_CHARS, CollectionShelf
from bench.retrieval.support import results, shares, some_of
from bench.stage import open_database
from rag_assistant.extraction.extract import read_document
from rag_assistant.extraction.formats.kinds import HTML, PLAIN
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.retrieval.chunking import chunk_document, indexed_text
from rag_assistant.retrieval.support import Support
from rag_assistant.storage.database import Database

PACKAGES = FILE.parent / ".packages"
TEXTS = FILE.parent / "manuals.jsonl"
# What the folders of the pages in English have in their names.
MANUALS = {
    "anarchism": "html",
    "apache2-doc": "manual/en",
    "aptitude-doc-en": "html/en",
    "debian-faq": "",
    "debian-handbook": "html/en-US",
    "debian-policy": "policy.html",
    "debian-reference-en": "",
    "developers-reference": "",
    "gimp-help-en": "help/en",
    "git-doc": "",
    "gnucash-docs": "-en",
    "harden-doc": "html/en-US",
    "installation-guide-amd64": "en",
    "libreoffice-help-en-us": "en-US/text",
    "linux-doc-6.1": "html",
    "octave-doc": "octave.html",
    "postfix-doc": "html",
    "postgresql-doc-15": "html",
    "python-django-doc": "html",
    "python3.11-doc": "html",
    "sqlite3-doc": "",
}
MIN_CHARS = 300
QUESTIONS = 300
# Manuals are added until a library has so many chunks; with all sets, until it has CHUNKS.
SIZES, CHUNKS = (10_000, 27_000), 100_000
# Pages of governments, on benefits and the pandemic: they answer some of each other's questions.
SAME_SUBJECTS = {"mtrag", "covidqa", "doc2dial"}


def read() -> None:
    """Read the manuals into one file, in a fixed random order, without pages that are nearly empty or there twice."""
    texts: dict[str, str] = {}
    for package, part in MANUALS.items():
        for path in (PACKAGES / package).rglob("*.html"):
            if part in str(path.parent):
                try:
                    text = read_document(path, HTML).text
                except ExtractionFailed:
                    continue
                if len(text) >= MIN_CHARS:
                    texts[text] = path.name
        print(f"{package}: {len(texts):,} pages in all", flush=True)
    with TEXTS.open("w") as file:
        for text in sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest()):
            file.write(json.dumps({"name": texts[text], "text": text}) + "\n")


def manuals() -> Iterator[tuple[str, ExtractedText]]:
    """Yield the name and the text of each page that was read."""
    with TEXTS.open() as file:
        for row in map(json.loads, file):
            yield row["name"], ExtractedText(row["text"], HTML, markdown=True)


def embed() -> None:
    """Embed the chunks of the manuals into the cache."""
    embedder, done = CachedMiniLM(), 0
    for name, extracted in manuals():
        texts = [indexed_text(name, one.section, one.text) for one in chunk_document(extracted, CHUNK_CHARS)]
        embedder.embed(texts)
        done += len(texts)
        print(f"{done:,} chunks", flush=True)
        if done >= CHUNKS:
            break


class GrowingShelf(CollectionShelf):
    """A library to which sets and manuals are added."""

    def __init__(self, database: Database, embedder: CachedMiniLM) -> None:
        super().__init__(database, Collection("", {}), embedder)
        self.held: set[str] = set()
        self.sets: set[str] = set()
        self._manuals = manuals()

    def grow(self, collections: Sequence[Collection], chunks: int) -> None:
        """Add sets, then manuals until there are so many chunks."""
        for collection in collections:
            self.sets.add(collection.name)
            for name, (title, text) in collection.documents.items():
                self._hold(name, title, ExtractedText(text, PLAIN))
        while self.count() < chunks and (page := next(self._manuals, None)):
            self._hold(f"manual {len(self.held)}", *page)
        self.keywords.load()

    def _hold(self, name: str, title: str, extracted: ExtractedText) -> None:
        if name not in self.held:
            self.held.add(name)
            self.put(name, title, extracted, chunk_document(extracted, CHUNK_CHARS))

    def count(self) -> int:
        """Return the number of chunks."""
        added, dropped = self.embeddings.version(self.embedders.configured().key)
        return added - dropped


def main() -> None:
    """Print what is found for the questions that a library answers and for others, as it grows, and where."""
    if not sets.DATA.exists() or not TEXTS.exists():
        print(f"The shared data or {TEXTS} is not on this machine; nothing to measure.")
        return
    xquad, covidqa, doc2dial, mtrag = sets.xquad("en"), sets.covidqa(), sets.doc2dial(), sets.mtrag()
    # Not cacm: the manuals answer questions about computers.
    every = (xquad, covidqa, doc2dial, mtrag, sets.canard(), sets.judged("cranfield"))
    questions = {one.name: some_of(one) for one in every}
    print("| library | chunks | own questions: found, near, nothing | others | others that find nothing, by set |")
    print("|---|---|---|---|---|")
    with growing() as shelf:
        _ask(shelf, questions, "part of xquad en", [sets.part(xquad, 80)])
        _ask(shelf, questions, "xquad en, manuals", [xquad], 1_000)
        for chunks in SIZES:
            _ask(shelf, questions, "xquad en, manuals", [], chunks)
        _ask(shelf, questions, "these, mtrag", [mtrag])
        _ask(shelf, questions, "these, covidqa, doc2dial", [covidqa, doc2dial])
        _ask(shelf, questions, "these, more manuals", [], CHUNKS)
        found = {one.name: _scores(shelf, one) for one in (covidqa, doc2dial, mtrag)}
    with growing() as shelf:
        _ask(shelf, questions, "covidqa, doc2dial", [covidqa, doc2dial])
        _ask(shelf, questions, "covidqa, doc2dial, manuals", [], SIZES[0])
    print("\n| set | measure | alone | in the largest library |\n|---|---|---|---|")
    for collection in (covidqa, doc2dial, mtrag):
        with growing() as shelf:
            shelf.grow([collection], 0)
            for measure, value in _scores(shelf, collection).items():
                print(f"| {collection.name} | {measure} | {value:.3f} | {found[collection.name][measure]:.3f} |")


@contextmanager
def growing() -> Iterator[GrowingShelf]:
    """Give an empty library."""
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        try:
            yield GrowingShelf(database, CachedMiniLM())
        finally:
            database.close()


def _ask(
    shelf: GrowingShelf, questions: Mapping[str, list[Asked]], name: str, more: Sequence[Collection], chunks: int = 0
) -> None:
    """Let a library grow; print the results of its own questions and of the others."""
    shelf.grow(more, chunks)
    own, others = Counter[Support](), dict[str, Counter[Support]]()
    for of_set, some in questions.items():
        if answered := [one for one in some if not shelf.held.isdisjoint(one.relevant)]:
            own += results(shelf, answered)
        elif not (of_set in SAME_SUBJECTS and shelf.sets & SAME_SUBJECTS):
            others[of_set] = results(shelf, some)
    every = sum(others.values(), Counter[Support]())
    nothing = ", ".join(f"{of_set} {one['nothing_found'] / one.total():.3f}" for of_set, one in others.items())
    print(f"| {name} | {shelf.count():,} | {shares(own)} | {shares(every)} | {nothing} |", flush=True)


def _scores(shelf: GrowingShelf, collection: Collection) -> dict[str, float]:
    alone = [replace(one, text=one.rewrite or one.text) for one in collection.questions]
    some = random.Random(9).sample(alone, QUESTIONS) if len(alone) > QUESTIONS else alone
    return score(some, lambda asked, limit: shelf.by_both(asked.text, limit), measures_of(collection))


if __name__ == "__main__":
    if sys.argv[1:] == ["read"]:
        read()
        embed()
    else:
        main()
