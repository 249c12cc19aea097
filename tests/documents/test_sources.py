"""Sources of documents: what is changed is updated, moved is moved, gone is gone, and each has its state."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.documents.sources.folder import Bucket, Folder
from rag_assistant.documents.sources.git import NEEDED, SILENT, GitRepository
from rag_assistant.documents.sources.watch import Source, Sources
from rag_assistant.records.errors import SettingsError
from rag_assistant.runtime.supervised_process import PLAIN_VARIABLES
from rag_assistant.services import Services
from rag_assistant.settings.live import open_settings
from rag_assistant.storage.database import set_values
from rag_assistant.storage.documents.sources import SourceStore
from rag_assistant.storage.tables import documents
from tests.documents.test_intake import outside_of, swap
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.s3_server import BUCKET, KEY, SECRET, S3Server
from tests.web.conftest import PAGE, app, client, environment, services, stand_ins, until, upload

__all__ = ["app", "client", "environment", "services", "stand_ins"]  # Fixtures.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    (made / "deep").mkdir(parents=True)
    (made / ".hidden").mkdir()
    (made / "geese.txt").write_text("The keeper feeds seventeen geese.")
    (made / "deep" / "boats.md").write_text("# Boats\n\nGreen boats float.")
    (made / ".hidden" / "secret.txt").write_text("Nobody reads this.")
    return made


class Watched:
    """A source that is looked through when a test says so."""

    def __init__(self, services: Services, source: Source) -> None:
        self._services = services
        self._source = source
        self.store = SourceStore(services.database)
        self.sources = Sources([source], services.library, self.store, 300, lambda: False)

    def look(self) -> dict[str, str]:
        """Look through it once, and return the texts of the documents by their names once all are ready."""
        self.store.claim(self._source.address, 0)
        self.sources.look_through(self._source)
        documents = self._services.documents
        until(lambda: all(one.state in ("ready", "failed", "cancelled") for one in documents.page(99)))
        return {one.name: documents.text(one.id).text for one in documents.page(99)}

    @property
    def state(self) -> tuple[int, int, str | None]:
        (one,) = self.store.all()
        assert one.checked_at is not None
        return one.files, one.refused, one.problem


@pytest.fixture
def watched(services: Services, folder: Path) -> Watched:
    return Watched(services, Folder(folder))


@pytest.mark.long
def test_a_source_waits_while_the_server_is_under_maintenance(
    services: Services, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.documents.sources.watch.MAX_POLL_SECONDS", 0.05)
    answers = iter((True, True, True, False))
    asked: list[bool] = []

    def rests() -> bool:
        asked.append(next(answers, False))
        assert asked[-1] is False or services.documents.page(9) == []
        return asked[-1]

    sources = Sources([Folder(folder)], services.library, SourceStore(services.database), 300, rests)
    sources.start()
    try:
        until(lambda: len(services.documents.page(9)) == 2)
        assert asked[:4] == [True, True, True, False]
    finally:
        sources.close()


def test_changed_is_updated_moved_is_moved_and_gone_is_gone(watched: Watched, folder: Path, services: Services) -> None:
    assert set(watched.look()) == {"geese.txt", "boats.md"}
    before = {one.name: one.id for one in services.documents.page(9)}
    (folder / "geese.txt").write_text("The keeper feeds eighteen swans.")
    (folder / "deep" / "boats.md").rename(folder / "ships.md")
    found = watched.look()
    assert found == {"geese.txt": "The keeper feeds eighteen swans.", "ships.md": "# Boats\n\nGreen boats float."}
    after = {one.name: one.id for one in services.documents.page(9)}
    assert (after["geese.txt"], after["ships.md"]) == (before["geese.txt"], before["boats.md"])
    (folder / "ships.md").unlink()
    assert set(watched.look()) == {"geese.txt"}
    assert watched.state == (1, 0, None)


@pytest.mark.long
def test_an_unchanged_file_is_not_opened_again(watched: Watched, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.look()
    opened: list[str] = []
    really = os.open

    def noting(path: Any, *words: Any, **more: Any) -> Any:
        opened.append(Path(path).name)
        return really(path, *words, **more)

    monkeypatch.setattr(os, "open", noting)
    watched.look()
    assert not {"geese.txt", "boats.md"} & {*opened}
    (folder / "geese.txt").write_text("The keeper feeds eighteen swans.")
    watched.look()
    assert "geese.txt" in opened


@pytest.mark.parametrize("what", ["file", "folder", "pipe"])
def test_what_became_a_link_after_it_was_listed_is_refused_told_and_tried_again(
    watched: Watched, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    before = {path: path.read_text() for path in (folder / "geese.txt", folder / "deep" / "boats.md")}
    with monkeypatch.context() as patched:
        swap(folder, outside_of(tmp_path), what, patched)
        assert "treasure" not in str(watched.look())
    files, refused, problem = watched.state
    assert (files, refused) == (2, 1)
    assert problem is not None
    assert problem.endswith("has become a link, or is in a folder that has. It was not read.")
    name = "deep" if what == "folder" else "geese.txt"
    (folder / name).unlink()
    if what == "folder":
        (folder / ".deep").rename(folder / "deep")
    else:
        (folder / name).write_text(before[folder / name])
    assert set(watched.look().values()) == set(before.values())


def test_what_cannot_be_read_is_named_and_not_tried_again_until_it_changes(watched: Watched, folder: Path) -> None:
    (folder / "film.mp4").write_bytes(b"\x7fELF\0\0\0\0")
    for _ in range(2):
        assert "film.mp4" not in watched.look()
        files, refused, problem = watched.state
        assert (files, refused) == (3, 1)
        assert problem is not None
        assert problem.startswith("film.mp4: ")
    (folder / "film.mp4").write_text("The script of the film.")
    assert watched.look()["film.mp4"] == "The script of the film."
    assert watched.state == (3, 0, None)


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_folder_that_is_not_mounted_deletes_nothing(watched: Watched, folder: Path, how: str) -> None:
    watched.look()
    folder.rename(folder.with_name("elsewhere"))
    if how == "empty":
        folder.mkdir()
    assert len(watched.look()) == 2
    problem = watched.state[2]
    assert problem == (
        f"There is no folder {folder}."
        if how == "gone"
        else "It is empty now. Its documents (2 in all) were kept; delete them if you no longer need them."
    )


@pytest.mark.long
def test_what_came_from_elsewhere_is_left_alone(
    watched: Watched, folder: Path, client: FlaskClient, services: Services, tmp_path: Path
) -> None:
    number = upload(client, "The keeper feeds seventeen geese.", "uploaded.txt")["document_id"]
    services.documents.change(number, origin=str(tmp_path / "other" / "place.txt"))
    assert set(watched.look()) == {"uploaded.txt", "boats.md"}
    (folder / "geese.txt").unlink()
    assert set(watched.look()) == {"uploaded.txt", "boats.md"}
    assert services.documents.get(number).origin == str(tmp_path / "other" / "place.txt")


@pytest.mark.long
def test_a_document_that_somebody_cancelled_stays_so(watched: Watched, services: Services) -> None:
    watched.look()
    number = services.documents.page(9)[0].id
    with services.database.write() as connection:
        set_values(connection, documents, number, {"state": "cancelled"})
    watched.look()
    assert services.documents.get(number).state == "cancelled"


def test_one_process_looks_through_a_source_in_its_time(services: Services) -> None:
    store = SourceStore(services.database)
    assert store.claim("/a", 60)
    assert not store.claim("/a", 60)
    assert store.claim("/b", 60)
    assert store.claim("/a", 0)
    store.keep_only(["/b"])
    assert [one.address for one in store.all()] == ["/b"]


def test_a_source_is_listed_before_anybody_has_looked_through_it(watched: Watched, folder: Path) -> None:
    assert [(one.address, one.checked_at) for one in watched.sources.states()] == [(str(folder), None)]
    watched.look()
    assert [(one.address, one.files) for one in watched.sources.states()] == [(str(folder), 2)]


def test_a_look_that_was_cut_short_is_due_at_the_next_start(watched: Watched, folder: Path) -> None:
    assert watched.store.claim(str(folder), 300)
    watched.sources.close()
    watched.sources.look_through(Folder(folder))
    assert watched.sources.states()[0].checked_at is None
    assert watched.store.claim(str(folder), 300)
    assert not watched.store.claim(str(folder), 300)


def test_a_server_looks_through_its_sources_and_shows_their_state(environment: dict[str, str], folder: Path) -> None:
    from rag_assistant.web import create_app

    missing = folder.with_name("missing")
    app = create_app(environment | {"DOCUMENT_SOURCES": f'["{folder}", "{missing}"]', "SOURCES_INTERVAL_SECONDS": "1"})
    services: Services = app.extensions["assistant"]
    services.start()
    try:
        client = app.test_client()
        until(lambda: all(one.checked_at for one in services.sources.states()) and len(services.sources.states()) == 2)
        states = {one["address"]: one for one in (client.get("/api/documents/sources").json or {})["sources"]}
        assert (states[str(folder)]["files"], states[str(folder)]["problem"]) == (2, None)
        page = client.get("/documents", headers=PAGE).text
        assert "Watched folders and repositories" in page
        assert f"There is no folder {missing}." in page
        (folder / "geese.txt").write_text("The keeper feeds eighteen swans.")
        until(lambda: "eighteen" in str(client.get("/api/search?q=swans").json))
        with quick_passwords():
            add_person(services, "Ann", "admin")
            add_person(services, "Ben")
            assert "Watched folders" in client_of(app, "Ann").get("/documents", headers=PAGE).text
            assert "Watched folders" not in client_of(app, "Ben").get("/documents", headers=PAGE).text
    finally:
        services.close()


def git(folder: Path, *words: str, given: str = "") -> str:
    name = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    command = ["git", "-C", str(folder), *name, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=given).stdout.strip()


def test_a_git_repository_is_fetched_and_read(services: Services, folder: Path, tmp_path: Path) -> None:
    git(folder, "init", "--quiet", "-b", "main")
    (folder / "out.txt").symlink_to("/etc/hostname")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "First")
    address = f"git+file://{folder}"
    watched = Watched(services, GitRepository(address, tmp_path / "clones"))
    found = watched.look()
    assert found.keys() == {"geese.txt", "boats.md", "out.txt"}
    assert found["out.txt"] == "/etc/hostname", "a link is the text of its target, and leads nowhere"
    assert {one.origin for one in services.documents.page(9)} >= {f"{address}#geese.txt", f"{address}#deep/boats.md"}
    (folder / "geese.txt").write_text("The keeper feeds eighteen swans.")
    git(folder, "mv", "deep/boats.md", "ships.md")
    git(folder, "rm", "-q", "out.txt")
    git(folder, "commit", "-qam", "Second")
    assert watched.look() == {
        "geese.txt": "The keeper feeds eighteen swans.",
        "ships.md": "# Boats\n\nGreen boats float.",
    }
    folder.rename(folder.with_name("elsewhere"))
    assert len(watched.look()) == 2
    problem = watched.state[2]
    assert problem is not None
    assert "could not be fetched" in problem


@pytest.mark.long
def test_a_small_repository_with_a_million_files_is_not_checked_out(
    services: Services, folder: Path, tmp_path: Path
) -> None:
    """Each of six folders holds ten times the one before it."""
    git(folder, "init", "--quiet", "-b", "main")
    made = git(folder, "hash-object", "-w", "geese.txt")
    kind = "100644 blob"
    for _ in range(6):
        listed = "".join(f"{kind} {made}\tgeese{n}.txt\n" for n in range(10))
        made, kind = git(folder, "mktree", given=listed), "040000 tree"
    git(folder, "update-ref", "refs/heads/main", git(folder, "commit-tree", made, "-m", "Bomb"))
    watched = Watched(services, GitRepository(f"git+file://{folder}", tmp_path / "clones"))
    assert watched.look() == {}
    assert str(watched.state[2]).endswith("has more than 5,000 files, which is the limit.")
    assert [path.name for path in (tmp_path / "clones").glob("*/*")] == [".git"]


def test_a_machine_without_git_says_so(services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(services, GitRepository("git+https://git.example/docs.git", tmp_path / "clones"))
    monkeypatch.setenv("PATH", str(tmp_path))
    watched.look()
    assert watched.state[2] == "git is not installed on this machine."


@pytest.mark.long
def test_git_gets_what_it_needs_and_none_of_our_keys(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nenv > {seen}\n")
    program.chmod(0o755)
    needed = {"SSH_AUTH_SOCK": "/run/agent", "GIT_SSH_COMMAND": "ssh -i key", "https_proxy": "http://proxy:1"}
    for name, value in needed.items():
        monkeypatch.setenv(name, value)
    for name in ("OPENAI_API_KEY", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "GIT_DIR", "GIT_CONFIG_PARAMETERS"):
        monkeypatch.setenv(name, "never")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    Watched(services, GitRepository("git+https://git.example/docs.git", tmp_path / "clones")).look()
    given = dict(line.split("=", 1) for line in seen.read_text().splitlines())
    assert given.items() >= (needed | {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}).items()
    assert "never" not in given.values()
    shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert given.keys() - shell <= PLAIN_VARIABLES | NEEDED | SILENT.keys()


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    server = S3Server(tmp_path / "s3")
    server.start()
    yield server
    with suppress(ProcessLookupError):
        server.kill()


def test_a_prefix_of_a_bucket_is_read_and_never_changed(services: Services, s3: S3Server, tmp_path: Path) -> None:
    from rag_assistant.files.s3 import S3Files

    manuals = s3.folder / "manuals"
    manuals.mkdir()
    (manuals / "geese.txt").write_text("The keeper feeds seventeen geese.")
    (s3.folder / "other.txt").write_text("Not below the prefix.")
    address = f"s3://{BUCKET}/manuals"
    watched = Watched(services, Bucket(address, S3Files(address, s3.url, None, True, tmp_path / "transfers")))
    assert watched.look() == {"geese.txt": "The keeper feeds seventeen geese."}
    (manuals / "geese.txt").rename(manuals / "birds.txt")
    assert watched.look() == {"birds.txt": "The keeper feeds seventeen geese."}
    assert services.documents.page(9)[0].origin == f"{address}/birds.txt"
    (manuals / "birds.txt").write_text("The keeper feeds eighteen swans.")
    assert watched.look() == {"birds.txt": "The keeper feeds eighteen swans."}
    s3.kill()
    assert len(watched.look()) == 1
    problem = watched.state[2]
    assert problem is not None
    assert "cannot be reached" in problem


@pytest.mark.parametrize(
    "source",
    [
        "notes",
        "git+https://ann:word@git.example/docs.git",
        "git+ext::sh",
        "git+ssh://-oProxyCommand=x/docs",
        "s3://",
        "ftp://x/y",
    ],
)
def test_what_can_be_no_source_is_refused_at_the_start(environment: dict[str, str], source: str) -> None:
    with pytest.raises(SettingsError, match=r"(?i)document_sources"):
        open_settings(environment | {"DOCUMENT_SOURCES": f'["{source}"]'})
