"""The cost of a question on each engine, and which limit comes first as load and library grow: bench/scaling.md.

``python -m bench scaling`` measures the costs, predicts a cluster's needs from them, and measures that cluster, too, to
check the prediction.
"""

import contextlib
import json
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import psycopg

from bench.relay import Relay
from bench.stage import fill_library
from bench.words import text_of
from deploy.cluster.cluster import Cluster, free_ports
from deploy.cluster.postgres import Postgres
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import migrate
from tests.testkit.server_process import ServerProcess, run_command
from tests.testkit.stub_model import Reply, StubModel

CHUNKS = 1_000
CLIENTS = 8
TURNS_OF_A_CONVERSATION = 12
WORDS = 60
SECONDS_BETWEEN_WORDS = 0.03
IDLE_SECONDS = 20.0
QUESTIONS_PER_SECOND = (1, 10, 1_000)
CHUNKS_IN_MILLIONS = (1, 100, 10_000)
# From file to ready, and the memory of a vector in each web process.
EMBEDDING_MS = 90.4
VECTOR_BYTES = 1570


@dataclass(frozen=True)
class Costs:
    """The cost of one question with its answer, and of one idle process per second."""

    web_ms: float
    database_ms: float
    round_trips: float
    wire_bytes: float
    stored_bytes: float
    log_bytes: float
    chunk_bytes: float = 0.0
    idle_web_ms: float = 0.0
    idle_database_ms: float = 0.0
    idle_round_trips: float = 0.0
    proxy_ms: float = 0.0


def main() -> None:
    """Measure, print, predict and compare."""
    costs = {"SQLite": of_sqlite(), "PostgreSQL": of_postgresql()}
    print_costs(costs)
    print_needs(costs["PostgreSQL"])
    compare(costs["PostgreSQL"], of_cluster())


def cpu_ms(process: psutil.Process) -> float:
    """Return the CPU time of a process and its children, user and system."""
    seconds = 0.0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            seconds += times.user + times.system
            if one is process:
                seconds += times.children_user + times.children_system
    return seconds * 1000


@contextlib.contextmanager
def model() -> Iterator[StubModel]:
    """Run a model that answers at the pace of a real one."""
    stub = StubModel(Reply(" ".join(["word"] * WORDS), seconds_between=SECONDS_BETWEEN_WORDS))
    yield stub
    stub.close()


def settings(stub: StubModel) -> dict[str, str]:
    """Return the environment of a measured server."""
    return {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub", "QUERY_REWRITING": "off", "LOG_LEVEL": "ERROR"}


def ask_many(url: str, clients: int = CLIENTS) -> int:
    """Ask in one conversation per client at once; return the number of questions."""

    def converse(number: int) -> None:
        conversation: dict[str, int] = {}
        for turn in range(TURNS_OF_A_CONVERSATION):
            question = {"question": text_of(8, 1000 * number + turn)} | conversation
            request = urllib.request.Request(
                f"{url}/api/query", json.dumps(question).encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as response:
                conversation = {"conversation_id": json.load(response)["conversation_id"]}

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(converse, range(clients)))
    return clients * TURNS_OF_A_CONVERSATION


def of_sqlite() -> Costs:
    """Measure one server with SQLite."""
    with tempfile.TemporaryDirectory() as folder, model() as stub:
        data = Path(folder) / "data"
        data.mkdir()
        database = Database(sqlite_url(data))
        migrate(database)
        fill_library(database, CHUNKS)
        database.close()
        server = ServerProcess(Path(folder), run_command, **settings(stub))
        server.start("/readyz")
        try:
            process = psutil.Process(server.process.pid)  # type: ignore[union-attr]
            ask_many(server.url, 1)
            before, bytes_before = cpu_ms(process), size_of_sqlite(data)
            count = ask_many(server.url)
            web = (cpu_ms(process) - before) / count
            stored = (size_of_sqlite(data) - bytes_before) / count
            before = cpu_ms(process)
            time.sleep(IDLE_SECONDS)
            idle = (cpu_ms(process) - before) / IDLE_SECONDS
            return Costs(web, 0.0, 0.0, 0.0, stored, 0.0, idle_web_ms=idle)
        finally:
            server.kill()


def size_of_sqlite(data: Path) -> int:
    """Return the bytes of all pages, including those in the log."""
    database = Database(sqlite_url(data))
    with database.read() as connection:
        pages = connection.exec_driver_sql("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        size = int(pages.scalar() or 0)
    database.close()
    return size


def of_postgresql() -> Costs:
    """Measure one server with PostgreSQL, and the traffic between them."""
    with tempfile.TemporaryDirectory() as folder, model() as stub:
        Path(folder).chmod(0o755)
        postgres = Postgres(Path(folder) / "postgres", free_ports(1)[0])
        postgres.start()
        relay = Relay(postgres.port)
        try:
            database = Database(postgres.url)
            migrate(database)
            empty, _ = sizes(postgres)
            fill_library(database, CHUNKS)
            database.close()
            chunk_bytes = (sizes(postgres)[0] - empty) / CHUNKS
            through = postgres.url.replace(f":{postgres.port}/", f":{relay.port}/")
            server = ServerProcess(Path(folder), run_command, DATABASE_URL=through, **settings(stub))
            server.start("/readyz")
            try:
                return replace(_measured(server, postgres, relay), chunk_bytes=chunk_bytes)
            finally:
                server.kill()
        finally:
            relay.close()
            postgres.stop()


def _measured(server: ServerProcess, postgres: Postgres, relay: Relay) -> Costs:
    assert server.process is not None
    assert postgres.process is not None
    web, database = psutil.Process(server.process.pid), psutil.Process(postgres.process.pid)
    ask_many(server.url, 1)
    before = cpu_ms(web), cpu_ms(database), relay.round_trips, relay.bytes, *sizes(postgres)
    count = ask_many(server.url)
    after = cpu_ms(web), cpu_ms(database), relay.round_trips, relay.bytes, *sizes(postgres)
    per_question = [(late - early) / count for early, late in zip(before, after, strict=True)]
    idle = cpu_ms(web), cpu_ms(database), relay.round_trips
    time.sleep(IDLE_SECONDS)
    later = cpu_ms(web), cpu_ms(database), relay.round_trips
    idle_costs = ((late - early) / IDLE_SECONDS for early, late in zip(idle, later, strict=True))
    web_idle, database_idle, trips_idle = idle_costs
    idle_by_name = {"idle_web_ms": web_idle, "idle_database_ms": database_idle, "idle_round_trips": trips_idle}
    return Costs(*per_question, **idle_by_name)


def sizes(postgres: Postgres) -> tuple[int, int]:
    """Return the size of the database, and the position of its write-ahead log."""
    with psycopg.connect(postgres.url.replace("+psycopg", ""), autocommit=True) as connection:
        size = "SELECT pg_database_size(current_database()), pg_current_wal_lsn() - '0/0'::pg_lsn"
        row = connection.execute(size).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def of_cluster() -> Costs:
    """Measure a cluster of three webs behind a proxy."""
    with tempfile.TemporaryDirectory() as folder, model() as stub:
        Path(folder).chmod(0o755)
        cluster = Cluster(Path(folder), settings(stub))
        try:
            cluster.postgres.start()
            database = Database(cluster.postgres.url)
            migrate(database)
            fill_library(database, CHUNKS)
            database.close()
            cluster.start()
            webs = [psutil.Process(web.process.pid) for web in cluster.webs if web.process]
            database_process, proxy = (
                psutil.Process(one.process.pid) for one in (cluster.postgres, cluster.proxy) if one.process
            )

            def spent() -> tuple[float, ...]:
                return sum(map(cpu_ms, webs)), cpu_ms(database_process), cpu_ms(proxy), *sizes(cluster.postgres)

            ask_many(cluster.url, 3)
            before, began = spent(), time.monotonic()
            count = ask_many(cluster.url, 3 * CLIENTS)
            seconds, after = time.monotonic() - began, spent()
            web, data, passed, stored, logged = (
                (late - early) / count for early, late in zip(before, after, strict=True)
            )
            print(f"\n{count} questions in {seconds:.0f} s by {3 * CLIENTS} clients.")
            return Costs(web, data, 0.0, 0.0, stored, logged, idle_web_ms=seconds / count, proxy_ms=passed)
        finally:
            cluster.stop()


def print_costs(costs: dict[str, Costs]) -> None:
    """Print what was measured for each engine."""
    rows: dict[str, Callable[[Costs], str]] = {
        "server CPU per question, ms": lambda one: f"{one.web_ms:.1f}",
        "PostgreSQL CPU per question, ms": lambda one: f"{one.database_ms:.1f}",
        "round trips per question": lambda one: f"{one.round_trips:.0f}",
        "bytes on the wire per question": lambda one: f"{one.wire_bytes:,.0f}",
        "database growth per turn, bytes": lambda one: f"{one.stored_bytes:,.0f}",
        "write-ahead log per turn, bytes": lambda one: f"{one.log_bytes:,.0f}",
        "CPU of an idle server, ms per second": lambda one: f"{one.idle_web_ms:.1f}",
        "PostgreSQL CPU for an idle server, ms per second": lambda one: f"{one.idle_database_ms:.1f}",
        "round trips of an idle server, per second": lambda one: f"{one.idle_round_trips:.1f}",
    }
    print("| | " + " | ".join(costs) + " |\n|---|" + "---|" * len(costs))
    for name, value in rows.items():
        print(f"| {name} | " + " | ".join(value(one) for one in costs.values()) + " |", flush=True)


def print_needs(cost: Costs) -> None:
    """Print what loads and libraries would need if every cost stayed the same."""
    print_head(
        "questions a second", "cores for webs", "for PostgreSQL", "round trips a second", "log, MB/s", "GB a day"
    )
    for load in QUESTIONS_PER_SECOND:
        cores = f"{load * cost.web_ms / 1000:.1f} | {load * cost.database_ms / 1000:.1f}"
        logged, stored = load * cost.log_bytes / 1e6, load * cost.stored_bytes * 86_400 / 1e9
        print(f"| {load:,} | {cores} | {load * cost.round_trips:,.0f} | {logged:.1f} | {stored:,.0f} |")
    print_head("million chunks", "database, GB", "vectors in each web's memory, GB", "CPU hours to embed")
    for millions in CHUNKS_IN_MILLIONS:
        gigabytes, memory = millions * cost.chunk_bytes / 1000, millions * VECTOR_BYTES / 1000
        print(f"| {millions:,} | {gigabytes:,.0f} | {memory:,.1f} | {millions * EMBEDDING_MS * 1000 / 3600:,.0f} |")


def print_head(*columns: str) -> None:
    """Print the head of a table."""
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def compare(one_server: Costs, cluster: Costs) -> None:
    """Print the prediction for three web and two worker processes beside the measurements."""
    # Five processes send heartbeats; the seconds between two questions replace the idle time.
    between = cluster.idle_web_ms
    predicted = {
        "webs": one_server.web_ms + 3 * one_server.idle_web_ms * between,
        "PostgreSQL": one_server.database_ms + 5 * one_server.idle_database_ms * between,
    }
    measured = {"webs": cluster.web_ms, "PostgreSQL": cluster.database_ms}
    print("\n| CPU ms per question | predicted | measured |\n|---|---|---|")
    for name, value in predicted.items():
        print(f"| {name} | {value:.1f} | {measured[name]:.1f} |")
    print(f"| proxy | | {cluster.proxy_ms:.2f} |")
