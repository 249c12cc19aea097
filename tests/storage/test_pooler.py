"""PgBouncer between servers and PostgreSQL: in session mode nothing is different, in transaction mode it is refused."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import make_url

from rag_assistant.records.errors import SettingsError
from rag_assistant.storage.database import Database
from rag_assistant.storage.migrate import refuse_forgetful_pooler
from tests.testkit.s3_server import wait_for_port
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerEnded, ServerProcess, free_port
from tests.testkit.stub_model import Reply, StubModel

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
LEASE_SECONDS = 4
Pooled = Callable[[str], str]

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed")


@pytest.fixture
def pooled(postgres_database: str) -> Iterator[Pooled]:
    """Starts PgBouncer in a mode, in front of a database, and gives the URL that leads through it."""
    url = make_url(postgres_database)
    with ExitStack() as stack:

        def start(mode: str) -> str:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folder.chmod(0o755)
            port, socket = free_port(), str(url.query["host"])
            (folder / "pooler.ini").write_text(
                f"[databases]\n* = host={socket} user={url.username}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
                f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n"
                "default_pool_size = 60\n"
            )
            # It refuses to run as root, and so does PostgreSQL, which then has an account of its own.
            own = {"user": Path(socket).stat().st_uid} if os.getuid() == 0 else {}
            command = [str(PROGRAM), "-q", str(folder / "pooler.ini")]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **own)  # type: ignore[call-overload]
            stack.callback(process.wait)
            stack.callback(process.kill)
            wait_for_port(port)
            return url.set(host="127.0.0.1", port=port, query={}).render_as_string(hide_password=False)

        yield start


@pytest.fixture
def stub() -> Iterator[StubModel]:
    model = StubModel(Reply(" ".join(f"wörd{n}" for n in range(400)), seconds_between=0.02))
    yield model
    model.close()


@pytest.fixture
def start(tmp_path: Path, stub: StubModel, server_fork: ServerFork) -> Iterator[Callable[[str, str], ServerProcess]]:
    """Starts a server on a database."""
    with ExitStack() as stack:

        def start_one(name: str, url: str) -> ServerProcess:
            (tmp_path / name).mkdir()
            environment = {
                "DATABASE_URL": url, "OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub-model",
                "LEASE_SECONDS": str(LEASE_SECONDS),
            }  # fmt: skip
            server = ServerProcess(tmp_path / name, server_fork.launch, **environment)
            stack.callback(server.kill)
            server.start()
            return server

        yield start_one


@pytest.mark.long
def test_in_session_mode_servers_hear_each_other_and_take_over(
    pooled: Pooled, start: Callable[[str, str], ServerProcess], stub: StubModel
) -> None:
    url = pooled("session")
    refuse_forgetful_pooler(Database(url))
    one, other = start("one", url), start("other", url)
    first = one.stream("Why?").read(30)
    status, stopped = other.call("POST", f"/api/turns/{first.turn_id}/stop")
    first.read()
    assert (status, stopped["status"], stopped["answer"]) == (200, "stopped", first.text)
    second = one.stream("And?").read(30)
    assert second.turn_id is not None
    followed = other.follow(second.turn_id, 0)
    one.kill()
    assert followed.read().last is not None
    assert followed.last is not None
    assert followed.last[1]["status"] == "interrupted"
    assert followed.text.startswith(second.read().text)
    stub.default = Reply("Well.")
    assert [other.call("POST", "/api/query", {"question": "So?"})[1]["answer"] for _ in range(8)] == ["Well."] * 8


@pytest.mark.long
def test_in_transaction_mode_without_prepared_statements_no_server_starts(
    pooled: Pooled, start: Callable[[str, str], ServerProcess]
) -> None:
    url = pooled("transaction")
    for _ in range(3):
        with pytest.raises(SettingsError, match="Set its mode to session"):
            refuse_forgetful_pooler(Database(url))
    with pytest.raises(ServerEnded, match=r"Cannot start\. database_url leads to a pooler in transaction mode"):
        start("one", url)
