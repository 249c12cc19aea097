"""The doctor: each kind of damage is found, named and mended, and a healthy library has none."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from rag_assistant.storage.database import Database, sqlite_url
from tests.cli.shell import Shell
from tests.testkit.stub_model import StubModel

DAMAGES: dict[str, tuple[str, str]] = {
    "chunk text": ("UPDATE chunks SET text = 'other' WHERE id = 1", "the chunks do not make up the text"),
    "chunk lost": ("DELETE FROM chunks WHERE id = 1", "the chunks do not make up the text"),
    "words lost": ("DELETE FROM chunk_words WHERE rowid = 1", "words do not find all of it"),
    "stray words": ("INSERT INTO chunk_words (rowid, words) VALUES (999, 'x')", "without a chunk"),
    "vector lost": ("DELETE FROM embeddings WHERE chunk_id = 1", "ready, but not all of it is embedded"),
    "vector broken": ("UPDATE embeddings SET vector = x'00' WHERE chunk_id = 1", "vectors of the wrong length"),
    "count wrong": ("UPDATE documents SET chunks = 7 WHERE id = 1", "the number of chunks is wrong"),
    "version wrong": ("UPDATE embedders SET additions = 70", "do not agree with its vectors"),
}


@pytest.fixture
def damage(shell: Shell, tmp_path: Path) -> Callable[[str], None]:
    add_documents(shell, tmp_path, 2)

    def execute(statement: str) -> None:
        database = Database(sqlite_url(tmp_path / "data"))
        with database.write() as connection:
            connection.execute(text(statement))
        database.close()

    return execute


def add_documents(shell: Shell, folder: Path, count: int) -> None:
    """Let there be so many documents, of one chunk each."""
    files = [folder / f"{number}.txt" for number in range(1, count + 1)]
    for file in files:
        file.write_text(f"Number {file.stem} feeds seventeen geese.")
    assert shell("documents", "add", *map(str, files)).exit_code == 0


def test_a_healthy_library_agrees(shell: Shell, damage: object) -> None:
    result = shell("doctor")
    assert (result.exit_code, result.stdout.strip()) == (0, "Everything is consistent.")


def test_a_document_in_the_trash_is_no_damage_and_is_not_read_again(
    shell: Shell, damage: Callable[[str], None]
) -> None:
    damage("UPDATE documents SET deleted_at = '2026-01-01 00:00:00.000000', content_key = 'deleted 1' WHERE id = 1")
    assert shell("doctor").stdout.strip() == "Everything is consistent."
    assert shell("reindex", "--read-again").exit_code == 0


def test_damage_of_every_kind_is_found_and_mended_at_once(
    shell: Shell, damage: Callable[[str], None], tmp_path: Path
) -> None:
    kinds = dict(enumerate(DAMAGES.values(), 1))
    add_documents(shell, tmp_path, len(kinds))
    for number, (statement, _) in kinds.items():
        damage(statement.replace("= 1", f"= {number}"))
    found, mended = shell("doctor"), shell("doctor", "--fix")
    assert (found.exit_code, mended.exit_code) == (1, 0), mended.output
    for _, words in kinds.values():
        assert words in found.output
        assert words in mended.output
    assert shell("doctor").stdout.strip() == "Everything is consistent."
    assert shell("documents", "list").stdout.count("ready") == len(kinds)


def test_a_damaged_page_is_found_where_nothing_else_looks(shell: Shell, damage: object, tmp_path: Path) -> None:
    file = tmp_path / "data" / "assistant.db"
    with closing(sqlite3.connect(file)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        index = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'ix_conversation_links_conversation'"
        )
        (page,) = index.fetchone()
    with file.open("r+b") as opened:
        opened.seek((page - 1) * size)
        opened.write(b"\xff" * size)
    result = shell("doctor")
    assert result.exit_code == 1
    assert "The database is damaged: " in result.output
    assert "Restore a backup." in result.output


@pytest.mark.long
def test_a_document_with_two_kinds_of_damage_is_mended_at_once(shell: Shell, damage: Callable[[str], None]) -> None:
    damage("UPDATE document_texts SET text = 'other' WHERE document_id = 1")
    damage("DELETE FROM chunk_words WHERE rowid = 1")
    assert shell("doctor", "--fix").exit_code == 0
    assert shell("doctor").stdout.strip() == "Everything is consistent."


@pytest.mark.long
def test_reindex_ends_where_something_cannot_be_embedded(
    shell: Shell, damage: Callable[[str], None], stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.documents.embedding.RETRY_BACKOFF_SECONDS", (0.01, 0.01, 0.01))
    usual = stub.embed
    stub.embed = lambda texts: [] if any("Number 1" in text for text in texts) else usual(texts)
    result = shell.under(EMBEDDER="endpoint:embed-1")("reindex")
    assert result.exit_code == 1
    assert "1 of 2 chunks are embedded with endpoint-embed-1#" in result.output
    assert "search uses it" in result.output


def test_a_lost_file_is_said_and_stray_ones_of_ours_dropped(
    shell: Shell,
    damage: object,
    tmp_path: Path,
) -> None:
    uploads = tmp_path / "data" / "uploads"
    next(uploads.iterdir()).unlink()
    strays = [uploads / ("0" * 32), uploads / f"{'1' * 32}.part"]
    foreign = uploads / "readme.txt"
    for one in (*strays, foreign):
        one.write_text("x")
        os.utime(one, (0, 0))
    result = shell("doctor", "--fix")
    assert result.exit_code == 1
    assert "the uploaded file is gone" in result.output
    assert f"repaired: Files in {uploads} that belong to no document of this database: 2." in result.output
    assert [one.exists() for one in (*strays, foreign)] == [False, False, True]


@pytest.mark.long
def test_everything_is_read_and_embedded_anew_on_request(shell: Shell, damage: object) -> None:
    assert "2 of 2 chunks are embedded with word-hash#" in shell("reindex").stdout
    again = shell("reindex", "--read-again")
    assert again.exit_code == 0, again.output
    assert shell("documents", "list").stdout.count("ready") == 2
