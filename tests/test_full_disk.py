"""At 0 bytes, people sign in, sign out and delete as ever, while questions and uploads are refused until there is room.

The disk is a small one in memory.
"""

import contextlib
import http.client
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest

from rag_assistant.accounts.passwords import hash_password
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.database import Database, sqlite_url
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import StubModel
from tests.torture.disk import small_disk
from tests.torture.stage import Skipped
from tests.web.conftest import until

PASSWORD = "a swan on the pond"
FORM = "application/x-www-form-urlencoded"
FULL = "The database could not do this: the disk is full. Nothing that was stored is lost."


@pytest.fixture
def server(tmp_path: Path, stub: StubModel, migrated: Path, server_fork: ServerFork) -> Iterator[ServerProcess]:
    with contextlib.ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(tmp_path / "disk"))
        except Skipped as skipped:
            pytest.skip(str(skipped))
        settings = {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub", "TRASH_DAYS": "0"}
        server = ServerProcess(disk, server_fork.launch, **settings)
        shutil.copytree(migrated, server.data)
        with closing(Database(sqlite_url(server.data))) as database:
            PeopleStore(database).add("Ann", "admin", hash_password(PASSWORD))
        server.start()
        until(lambda: (server.data / "reserve").exists())
        yield server
        server.kill()


def fill(server: ServerProcess) -> Path:
    """Leave no byte; a small change would still find room in what SQLite has allocated."""
    filler = server.data.parent / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1_000_000, 1000, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size) == size:
                    pass
    return filler


class Browser:
    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self.cookie = ""

    def send(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> tuple[int, str]:
        with closing(http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=60)) as connection:
            headers = {"Content-Type": kind, "Cookie": self.cookie, "Origin": self._server.url}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            self.cookie = (response.headers["Set-Cookie"] or self.cookie).partition(";")[0]
            return response.status, response.read().decode()

    def sign_in(self) -> int:
        return self.send("POST", "/login", urlencode({"name": "Ann", "password": PASSWORD}).encode(), FORM)[0]

    def ask(self) -> tuple[int, str]:
        return self.send("POST", "/api/query", json.dumps({"question": "Do geese hiss?"}).encode())

    def upload(self, text: str) -> tuple[int, str]:
        body = f'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n{text}\r\n--x--\r\n'
        return self.send("POST", "/api/documents", body.encode(), "multipart/form-data; boundary=x")


@pytest.mark.long
def test_a_disk_with_no_byte_left_lets_people_sign_in_and_delete(server: ServerProcess) -> None:
    ann = Browser(server)
    assert ann.sign_in() == 303
    status, told = ann.ask()
    assert status == 200
    conversation = json.loads(told)["conversation_id"]
    status, told = ann.upload("Geese hiss. " * 2000)
    assert status == 202
    document = json.loads(told)["document_id"]
    until(lambda: '"ready"' in ann.send("GET", f"/api/documents/{document}")[1])
    filler = fill(server)
    until(lambda: json.loads(ann.send("GET", "/readyz")[1])["parts"]["database"] == "full")
    assert shutil.disk_usage(server.data).free > 1_000_000
    assert "questions and uploads are refused until there is room" in server.log.read_text()
    for _ in range(4):
        assert ann.send("POST", "/logout")[0] == 303
        assert ann.send("GET", "/api/conversations")[0] == 401
        assert ann.sign_in() == 303
    for status, told in (ann.ask(), ann.upload("Swans sing.")):
        assert (status, json.loads(told)["error"]["message"]) == (507, FULL)
    assert ann.send("DELETE", f"/api/documents/{document}")[0] == 204
    assert ann.send("DELETE", f"/api/conversations/{conversation}")[0] == 204
    assert ann.send("GET", f"/api/documents/{document}")[0] == 404
    assert not (server.data / "reserve").exists()
    filler.unlink()
    assert ann.ask()[0] == 200
    assert (server.data / "reserve").exists()
    until(lambda: json.loads(ann.send("GET", "/readyz")[1])["parts"]["database"] == "ready")
    assert ann.upload("Swans sing.")[0] == 202
