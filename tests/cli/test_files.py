"""Files of documents move between the data folder and S3, checked, and are gone where they were."""

from pathlib import Path

import pytest

from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents.documents import DocumentStore
from tests.cli.shell import Shell
from tests.testkit.s3_server import BUCKET, FaultyProxy, S3Server, refusal


@pytest.fixture
def in_s3(shell: Shell, s3_proxy: FaultyProxy, tmp_path: Path) -> Shell:
    """The installation with two documents in its folder, after files_url was set."""
    for name in ("geese", "swans"):
        (tmp_path / f"{name}.txt").write_text(f"Of {name}.")
    assert shell("documents", "add", *map(str, sorted(tmp_path.glob("*.txt")))).exit_code == 0
    return shell.under(FILES_URL=f"s3://{BUCKET}/{tmp_path.name}", S3_ENDPOINT_URL=s3_proxy.url)


def test_files_move_to_the_bucket_and_back(in_s3: Shell, shell: Shell, s3: S3Server, tmp_path: Path) -> None:
    uploads = tmp_path / "data" / "uploads"
    database = Database(sqlite_url(tmp_path / "data"))
    DocumentStore(database, "").trash(1)  # In the trash it has its file.
    database.close()
    before = {path.name: path.read_bytes() for path in uploads.iterdir()}
    moved = in_s3("files", "move")
    assert f"2 files moved from {uploads} to s3://{BUCKET}/{tmp_path.name}" in moved.stdout
    assert list(uploads.iterdir()) == []
    assert s3.names(tmp_path.name) == set(before)
    assert in_s3("doctor").stdout.endswith("Everything is consistent.\n")
    assert in_s3("reindex", "--read-again").exit_code == 0
    assert "0 files moved" in in_s3("files", "move").stdout
    back = shell.under(S3_ENDPOINT_URL=in_s3.environment["S3_ENDPOINT_URL"])
    assert "2 files moved" in back("files", "move", "--from", f"s3://{BUCKET}/{tmp_path.name}").stdout
    assert {path.name: path.read_bytes() for path in uploads.iterdir()} == before
    assert s3.names(tmp_path.name) == set()


@pytest.mark.long
def test_a_move_that_breaks_off_is_gone_on_with(
    in_s3: Shell, s3_proxy: FaultyProxy, s3: S3Server, tmp_path: Path
) -> None:
    seen: list[str] = []

    def second_file(request: object) -> bool:
        seen.append(getattr(request, "command", ""))
        return seen.count("PUT") == 2 and refusal(403, "AccessDenied")(request)  # type: ignore[arg-type]

    s3_proxy.fault = second_file
    broken = in_s3("files", "move")
    assert broken.exit_code == 1
    assert "rejected the keys" in broken.stderr
    assert len(s3.names(tmp_path.name)) == 1
    assert "1 file moved" in in_s3("files", "move").stdout
    assert in_s3("doctor").stdout.endswith("Everything is consistent.\n")


@pytest.mark.long
def test_a_file_that_is_not_what_was_uploaded_does_not_move(in_s3: Shell, s3: S3Server, tmp_path: Path) -> None:
    for path in (tmp_path / "data" / "uploads").iterdir():
        path.write_bytes(b"x")
    refused = in_s3("files", "move")
    assert refused.exit_code == 1
    assert "is not the one that was uploaded" in refused.stderr
    assert s3.names(tmp_path.name) == set()


def test_where_files_are_already_nothing_can_be_moved(shell: Shell) -> None:
    refused = shell("files", "move")
    assert refused.exit_code == 2
    assert "Set files_url, or use --from." in refused.stderr


def test_without_the_package_the_setting_is_refused_with_how_to_install_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rag_assistant.files.s3", None)
    refused = shell.under(FILES_URL="s3://documents")("status")
    assert "files_url needs the package" in refused.stderr
    assert "Run `.venv/bin/pip install -e '.[s3]'`" in refused.stderr
