"""Words in memory and PostgreSQL put the same chunks first: the documentation, asked for its own headings."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assistant.retrieval.terms import query_terms
from rag_assistant.storage import postgres_ranking
from rag_assistant.storage.database import Database, sqlite_url
from tests.testkit.shelf import Shelf

DOCS = Path(__file__).resolve().parents[3] / "docs"
MAX_PARAGRAPHS = 300
LIMIT = 10


@pytest.fixture
def both(postgres_database: str, migrated: Path, tmp_path: Path) -> Iterator[list[Shelf]]:
    """The same library on SQLite and on PostgreSQL."""
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    shelves = [Shelf(Database(url)) for url in (sqlite_url(tmp_path), postgres_database)]
    for shelf in shelves:
        shelf.read(shelf.add(), *paragraphs())
    yield shelves
    for shelf in shelves:
        shelf.database.close()


def paragraphs() -> list[str]:
    texts = "\n\n".join(path.read_text() for path in sorted(DOCS.glob("*.md")))
    return list(dict.fromkeys(one for one in texts.split("\n\n") if len(one) > 80))[:MAX_PARAGRAPHS]


def headings() -> list[str]:
    lines = [line for path in sorted(DOCS.glob("*.md")) for line in path.read_text().splitlines()]
    return [line.strip("# ") for line in lines if line.startswith("#")][::3]


@pytest.mark.long
def test_both_engines_rank_alike(both: list[Shelf], monkeypatch: pytest.MonkeyPatch) -> None:
    assert share_of_the_same(both, headings()) >= 0.95
    # As in a library where the rarest words alone choose the candidates.
    monkeypatch.setattr(postgres_ranking, "MAX_CANDIDATES", 60)
    assert share_of_the_same(both, headings()) >= 0.9


def share_of_the_same(both: list[Shelf], questions: list[str]) -> float:
    """Return how many of the first ten hits are the same, of all questions; scores are within five percent."""
    same = asked = 0
    for heading in questions:
        words = query_terms(heading, both[0].keywords.store.state().languages)
        # Only in memory are words like those that no chunk holds looked for.
        unknown = both[0].keywords.unknown(words)
        words = [word for word in words if word not in unknown]
        lite, postgres = (dict(shelf.keywords.search(words, LIMIT)) for shelf in both)
        if lite:
            asked += len(lite)
            same += sum(score == pytest.approx(postgres.get(number, 0.0), rel=0.05) for number, score in lite.items())
    assert asked > 350
    return same / asked
