"""Folders on the command line: what is unchanged is skipped, what changed is replaced, what is gone may go."""

import os
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.documents.intake import Intake, SourceFile
from rag_assistant.web import create_app
from tests.cli.shell import Shell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    (made / "deep").mkdir(parents=True)
    (made / ".hidden").mkdir()
    (made / "geese.txt").write_text("The keeper feeds seventeen geese.")
    (made / "deep" / "boats.md").write_text("# Boats\n\nGreen boats float.")
    (made / ".hidden" / "secret.txt").write_text("Nobody reads this.")
    return made


def test_a_folder_is_taken_in_once(shell: Shell, folder: Path) -> None:
    first = shell("documents", "add", str(folder), "--tag", "notes")
    assert first.exit_code == 0, first.output
    assert "2 new" in first.stdout
    second = shell("documents", "add", str(folder))
    assert second.stdout.strip() == "2 unchanged"
    assert shell("documents", "list", "--tag", "notes").stdout.count("[notes]") == 2
    assert "secret" not in shell("documents", "list").stdout


@pytest.mark.long
def test_what_is_no_file_of_the_folder_is_refused_and_the_rest_is_taken_in(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("Somebody else's secret.")
    (folder / "link.txt").symlink_to(outside)
    (folder / "own.md").symlink_to(folder / "deep" / "boats.md")
    os.mkfifo(folder / "pipe.txt")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("Latin letters.")
    result = shell("documents", "add", str(folder))
    assert result.exit_code == 1
    assert "2 new, 1 unchanged, 2 rejected" in result.stdout
    assert f"link.txt: This is a link to {outside}, outside the folder." in result.stderr
    assert "caf\ufffd.txt: The name of this file is not UTF-8. Rename it." in result.stderr
    assert "This is not a file." in shell("documents", "add", str(folder / "pipe.txt")).stderr
    assert "1 new" in shell("documents", "add", str(folder / "link.txt")).stdout, "a person named it"


@pytest.mark.long
def test_a_changed_file_replaces_its_older_version(shell: Shell, folder: Path) -> None:
    shell("documents", "add", str(folder), "--tag", "notes")
    (folder / "geese.txt").write_text("The keeper feeds eighteen swans.")
    result = shell("documents", "add", str(folder))
    assert "1 changed, 1 unchanged" in result.stdout
    listed = shell("documents", "list", "--tag", "notes").stdout.splitlines()
    assert len(listed) == 2
    assert all("ready" in line for line in listed)
    assert shell("documents", "add", str(folder)).stdout.strip() == "2 unchanged"


def test_a_file_that_moved_keeps_its_document(shell: Shell, folder: Path) -> None:
    shell("documents", "add", str(folder))
    (folder / "geese.txt").rename(folder / "deep" / "birds.txt")
    assert "1 moved" in shell("documents", "add", str(folder), "--remove-missing").stdout
    listed = shell("documents", "list").stdout
    assert "birds.txt" in listed
    assert "geese.txt" not in listed
    assert len(listed.splitlines()) == 2


@pytest.mark.long
def test_files_that_are_gone_go_only_when_that_is_said(shell: Shell, folder: Path) -> None:
    shell("documents", "add", str(folder))
    (folder / "geese.txt").unlink()
    shell("documents", "add", str(folder))
    assert len(shell("documents", "list").stdout.splitlines()) == 2
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x.txt").write_text("x")
    shell("documents", "add", str(elsewhere), "--remove-missing")
    assert len(shell("documents", "list").stdout.splitlines()) == 3, "what is gone elsewhere stays"
    assert "gone, document" in shell("documents", "add", str(folder), "--remove-missing").stdout
    assert "geese.txt" not in shell("documents", "list").stdout


@pytest.mark.long
def test_what_was_uploaded_stays_when_its_copy_in_a_folder_goes(shell: Shell, folder: Path) -> None:
    app = create_app(shell.environment)
    with (folder / "geese.txt").open("rb") as file:
        assert app.test_client().post("/api/documents", data={"file": (file, "uploaded.txt")}).status_code == 202
    app.extensions["assistant"].close()
    assert "1 new, 1 known" in shell("documents", "add", str(folder)).stdout
    (folder / "geese.txt").unlink()
    assert "gone" not in shell("documents", "add", str(folder), "--remove-missing").stdout
    assert "uploaded.txt" in shell("documents", "list").stdout


@pytest.mark.long
def test_a_file_that_becomes_what_another_is_is_not_kept_twice(shell: Shell, folder: Path) -> None:
    shell("documents", "add", str(folder))
    (folder / "geese.txt").write_text((folder / "deep" / "boats.md").read_text())
    assert "1 known" in shell("documents", "add", str(folder)).stdout
    assert [line.split()[-1] for line in shell("documents", "list").stdout.splitlines()] == ["boats.md"]


def test_tags_are_changed_and_documents_cancelled_and_read_again(shell: Shell, folder: Path) -> None:
    shell("documents", "add", str(folder))
    assert "[sea, wood]" in shell("documents", "tag", "1", "wood", "sea").stdout
    assert "ready" in shell("documents", "cancel", "1").stdout
    assert shell("documents", "retry", "1").exit_code == 0
    assert "ready" in shell("documents", "list", "--tag", "sea").stdout
    assert shell("documents", "retry", "99").exit_code == 1


@pytest.mark.long
def test_a_file_that_is_named_twice_is_taken_in_once(shell: Shell, folder: Path) -> None:
    shell("documents", "add", str(folder))
    (folder / "geese.txt").write_text("The keeper feeds eighteen swans.")
    (folder / "link.txt").symlink_to(folder / "geese.txt")
    shell("documents", "add", str(folder), str(folder / "geese.txt"))
    listed = shell("documents", "list").stdout.splitlines()
    assert len(listed) == 2
    assert all("ready" in line for line in listed)


@pytest.mark.long
def test_a_document_stays_until_the_one_with_the_same_content_is_ready(shell: Shell, folder: Path) -> None:
    shell("documents", "add", str(folder))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    shell("documents", "add", str(folder))
    (folder / "geese.txt").write_bytes(b"%PDF-1.4 nothing")
    shell("documents", "add", str(folder))
    assert "geese.txt" in shell("documents", "list").stdout


@pytest.mark.parametrize("what", ["file", "folder", "pipe"])
def test_what_became_a_link_after_the_folder_was_listed_is_refused(
    shell: Shell, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    swap(folder, outside_of(tmp_path), what, monkeypatch)
    result = shell("documents", "add", str(folder))
    assert (result.exit_code, "1 new, 1 rejected" in result.stdout) == (1, True), result.output
    assert "has become a link, or is in a folder that has. It was not read." in result.stderr
    app = create_app(shell.environment)
    documents = app.extensions["assistant"].documents
    assert not [one for one in documents.page(9) if "treasure" in documents.text(one.id).text]
    app.extensions["assistant"].close()


def outside_of(folder: Path) -> Path:
    """Return a folder beside the listed one, with a file of each name in it."""
    outside = folder / "outside"
    outside.mkdir()
    for name in ("boats.md", "geese.txt"):
        (outside / name).write_text("Somebody else's treasure.")
    return outside


def swap(folder: Path, outside: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a link or a pipe in place of a file, or of its folder, after it was listed and before it is opened."""
    take_in, victim = Intake.take_in, "boats.md" if what == "folder" else "geese.txt"

    def swapped(intake: Intake, file: SourceFile, *args: Any, **named: Any) -> Any:
        if file.name == victim and what == "folder":
            (folder / "deep").rename(folder / ".deep")
            (folder / "deep").symlink_to(outside)
        elif file.name == victim:
            (folder / victim).unlink()
            (folder / victim).symlink_to(outside / victim) if what == "file" else os.mkfifo(folder / victim)
        return take_in(intake, file, *args, **named)

    monkeypatch.setattr(Intake, "take_in", swapped)
