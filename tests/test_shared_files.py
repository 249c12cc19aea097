"""Two servers on one PostgreSQL database and one bucket: what one of them was given, the other one has, too."""

import contextlib
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.s3_server import S3Missing, S3Server
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerEnded, ServerProcess

LEASE_SECONDS = 4
TAKEN = "rag_assistant.storage.documents.documents:DocumentStore.take:after:1"

pytestmark = pytest.mark.usefixtures("postgres_server")


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[S3Server]:
    """An S3 server of a test's own, which it may kill."""
    try:
        server = S3Server(tmp_path / "s3")
    except S3Missing as missing:
        pytest.skip(str(missing))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def servers(
    tmp_path: Path, bucket: S3Server, server_fork: ServerFork, postgres_database: str
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers, each with a folder of its own, not started yet."""
    environment = bucket.settings("shelf") | {
        "DATABASE_URL": postgres_database,
        "LEASE_SECONDS": str(LEASE_SECONDS),
    }
    made = [ServerProcess(tmp_path / name, server_fork.launch, **environment) for name in ("one", "other")]
    for server in made:
        server.data.parent.mkdir()
    yield made[0], made[1]
    for server in made:
        if server.process is not None:
            server.kill()


def send(server: ServerProcess, text: str) -> tuple[int, Any]:
    body = f'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n{text}\r\n--x--\r\n'
    # It ends as soon as it has begun to read the document, which may be in the middle of its response.
    with contextlib.suppress(OSError, HTTPException):
        return server.send("POST", "/api/documents", body.encode(), "multipart/form-data; boundary=x")
    return 0, None


def fetch(server: ServerProcess, number: int) -> bytes:
    with urllib.request.urlopen(f"{server.url}/api/documents/{number}/file", timeout=20) as file:
        content: bytes = file.read()
        return content


def until(holds: Callable[[], bool], server: ServerProcess) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, server.log.read_text()
        time.sleep(0.05)


def state(server: ServerProcess, number: int) -> str:
    return str(server.call("GET", f"/api/documents/{number}")[1]["state"])


@pytest.mark.long
def test_what_was_accepted_outlives_the_bucket_and_both_servers_and_is_shown_and_deleted_through_either(
    servers: tuple[ServerProcess, ServerProcess], bucket: S3Server
) -> None:
    one, other = servers
    one.environment["KILL_AT"] = TAKEN
    one.start()
    send(one, "Geese hiss.")
    assert one.process is not None
    one.process.wait(30)
    bucket.kill()
    other.start()
    number = other.call("GET", "/api/documents")[1]["documents"][0]["document_id"]
    until(lambda: bool(other.call("GET", f"/api/documents/{number}")[1]["reason"]), other)
    waiting = other.call("GET", f"/api/documents/{number}")[1]
    # Meanwhile another server may listen where it was.
    assert "Trying again in" in waiting["reason"]
    assert send(other, "Swans sing.")[0] == 503
    other.kill()
    bucket.start()
    other.start()
    until(lambda: state(other, number) == "ready", other)
    assert len(other.call("GET", "/api/documents")[1]["documents"]) == 1
    assert len(bucket.names("shelf")) == 1
    del one.environment["KILL_AT"]
    one.start()
    for server in (one, other):
        assert fetch(server, number) == b"Geese hiss."
    assert one.call("DELETE", f"/api/documents/{number}")[0] == 204
    until(lambda: bucket.names("shelf") == set(), one)


@pytest.mark.long
def test_a_server_that_keeps_its_files_elsewhere_does_not_start_beside_the_first(
    servers: tuple[ServerProcess, ServerProcess],
) -> None:
    one, other = servers
    one.start()
    del other.environment["FILES_URL"]
    with pytest.raises(ServerEnded, match='files_url is null, but a server on the same database uses "s3://documents/'):
        other.start()
