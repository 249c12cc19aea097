"""Measure how often a question for what is current finds the newer of two versions first.

The versions are paragraphs of XQuAD with one figure changed, and passages of real documents in two releases of Debian
(``python -m bench.retrieval.versions FOLDER`` with ``FOLDER/SUITE/debs/*.deb``). Of the pairs, the even ones chose
the constants of ``retrieval/versions.py``; the odd ones report.
"""

import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from difflib import SequenceMatcher
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.sets import Collection, lines, xquad
from bench.retrieval.shelf import CHUNK_CHARS, CollectionShelf, shelf_of
from rag_assistant.extraction.formats.kinds import PLAIN
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.chunking import chunk_document
from rag_assistant.retrieval.dates import date_in_text
from rag_assistant.retrieval.postprocess import number_sources
from rag_assistant.retrieval.versions import time_of, without_other_versions

TODAY = date(2026, 11, 29)
OLDER, NEWER = "12 March 2021", "9 June 2024"
FIGURE = re.compile(r"\d[\d,.]*\d|\d")
SHOWN = 8
AROUND = 1500
MAX_OF_A_FILE = 4


class Pair(NamedTuple):
    """Two versions of a text, and a question whose answer differs."""

    name: str
    older: str
    newer: str
    question: str


def synthetic() -> list[Pair]:
    """Return paragraphs of XQuAD in two versions that differ in one figure, each with its question."""
    texts = {row["_id"]: row["text"] for row in lines("xquad/corpus_en.jsonl")}
    chance, pairs = random.Random(66), {}
    for row in lines("xquad/queries_en.jsonl"):
        (answer, *_), text = row["answers"], texts[row["gold_doc"]]
        figure = FIGURE.search(answer)
        if figure and text.count(answer) == 1 and row["gold_doc"] not in pairs:
            other = re.sub(r"\d", lambda digit: str((int(digit[0]) + 3) % 9 + 1), figure[0])
            both = [text, text.replace(answer, answer.replace(figure[0], other))]
            chance.shuffle(both)
            pairs[row["gold_doc"]] = Pair(row["gold_doc"], both[0], both[1], row["text"])
    return list(pairs.values())


def real(folder: Path) -> list[Pair]:
    """Return passages of documents that two releases of Debian have with another figure."""
    suites = [texts_of(folder / suite / "debs") for suite in ("bullseye", "bookworm", "trixie")]
    pairs = []
    for release, (older, newer) in enumerate(pairwise(suites)):
        for name in sorted(older.keys() & newer.keys()):
            pairs += list(islice(changed(f"{release} {name}", older[name], newer[name]), MAX_OF_A_FILE))
    return pairs


def texts_of(folder: Path) -> dict[str, str]:
    """Return the texts in packages, by package and file."""
    texts = {}
    for deb in sorted(folder.glob("*.deb")):
        package = deb.name.partition("_")[0]
        with tempfile.TemporaryDirectory() as unpacked:
            subprocess.run(["dpkg-deb", "-x", str(deb), unpacked], check=True)
            for file in sorted(Path(unpacked).rglob("*")):
                if file.is_file() and not file.is_symlink() and "changelog" not in file.name.lower():
                    text = text_of(file)
                    if text:
                        texts[f"{package}/{file.name.removesuffix('.gz')}"] = text
    return texts


def text_of(file: Path) -> str:
    """Return the text of a plain or HTML file, empty for others."""
    name = file.name.removesuffix(".gz")
    if not re.search(r"\.(txt|html|en\.html)$|^(README|NEWS|FAQ)[\w.]*$", name):
        return ""
    read = subprocess.run(["zcat", "-f", str(file)], check=True, capture_output=True).stdout.decode("utf-8", "replace")
    if name.endswith("html"):
        read = re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^>]+>", " ", read)
        read = re.sub(r"[^\S\n]+", " ", read)
    return read


def changed(name: str, older: str, newer: str) -> Iterator[Pair]:
    """Yield the surroundings of sentences that differ in one figure only."""
    sentences = {one: at for at, one in sentences_of(newer)}
    known = {one for _, one in sentences_of(older)}
    by_shape: dict[str, str] = {FIGURE.sub("#", one): one for one in sentences if one not in known}
    for at, sentence in sentences_of(older):
        other = by_shape.pop(FIGURE.sub("#", sentence), None) if sentence not in sentences else None
        if other and FIGURE.search(sentence):
            there = sentences[other]
            words = re.sub(r"\S*\d\S*", "", sentence)
            if len(words.split()) < 6:
                continue
            around = older[max(0, at - AROUND) : at + AROUND], newer[max(0, there - AROUND) : there + AROUND]
            if SequenceMatcher(None, *around, autojunk=False).quick_ratio() > 0.5:
                yield Pair(f"{name} {at}", *around, f"{' '.join(words.split())}?")


def sentences_of(text: str) -> list[tuple[int, str]]:
    return [
        (match.start(), " ".join(match[0].split()))
        for match in re.finditer(r"[A-Z][^.!?\n]*(?:\n[^.!?\n]+){0,4}[.!?](?=\s)", text)
        if 40 <= len(match[0]) <= 400
    ]


@contextmanager
def shelf_with(pairs: list[Pair], embedder: CachedMiniLM) -> Iterator[CollectionShelf]:
    """Give a library with both versions of each pair, and all paragraphs of XQuAD that are in no pair."""
    names = {pair.name for pair in pairs}
    others = {name: one for name, one in xquad("en").documents.items() if name not in names}
    with shelf_of(Collection("versions", others), embedder) as shelf:
        for n, pair in enumerate(pairs):
            for age, text, day in (("older", pair.older, OLDER), ("newer", pair.newer, NEWER)):
                dated = f"Version of {day}\n\n{text}"
                extracted = ExtractedText(dated, PLAIN, dates={"text": date_in_text(dated, "english", TODAY)})
                pieces, title = chunk_document(extracted, CHUNK_CHARS), f"notes {n} of {day}.txt"
                shelf.put(f"{pair.name} {age}", title, extracted, pieces)
        yield shelf


def report(title: str, pairs: list[Pair], shelf: CollectionShelf) -> None:
    """Print how often the version asked for comes first, before and after, and what the preference moves."""
    print(f"{title}: {len(pairs)} pairs")
    for wish, right, other in (("Currently, {}", "newer", "older"), ("In 2022, {}", "older", "newer")):
        first = {"before": 0, "after": 0}
        both = lost = quoted = 0
        for pair in pairs:
            question = wish.format(pair.question[0].lower() + pair.question[1:])
            with patch("rag_assistant.retrieval.search.preferred", lambda passages, _: list(passages)):
                before = shelf.by_both(question, SHOWN)
            after = shelf.by_both(question, SHOWN)
            for name, passages in (("before", before), ("after", after)):
                places = [one.document for one in passages]
                mine = [places.index(x) if (x := f"{pair.name} {age}") in places else 99 for age in ("newer", "older")]
                ahead = mine[0] < mine[1]
                first[name] += ahead if right == "newer" else mine[1] < mine[0]
            both += {f"{pair.name} older", f"{pair.name} newer"} <= {one.document for one in after}
            lost += len({one.chunk_id for one in before} - {one.chunk_id for one in after})
            sources = number_sources(after)
            valid = without_other_versions(sources, time_of(question, TODAY))
            left = {one.document for one in valid}
            quoted += f"{pair.name} {right}" in left and f"{pair.name} {other}" not in left
        print(
            f"  {wish:16} right one first {first['before']} -> {first['after']}, both in the first {SHOWN}: {both}, "
            f"passages pushed out: {lost}, only the right one quoted: {quoted}"
        )


def main() -> None:
    embedder = CachedMiniLM()
    sets = {} if len(sys.argv) > 2 else {"XQuAD": synthetic()}
    if len(sys.argv) > 1:
        sets["Debian"] = real(Path(sys.argv[1]))
    for name, pairs in sets.items():
        with shelf_with(pairs, embedder) as shelf:
            report(f"{name}, chosen on", pairs[::2], shelf)
            report(f"{name}, reported", pairs[1::2], shelf)


if __name__ == "__main__":
    main()
