"""Backups made while everybody works, and databases of every older schema, upgraded under kills."""

import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import MetaData, insert

from rag_assistant.settings.package_files import MIGRATIONS
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import SCHEMA_REVISION
from tests.testkit.server_process import PROJECT, ServerProcess
from tests.torture.asking import Asked, ask_all
from tests.torture.clients import answers_of
from tests.torture.echo import answer_to
from tests.torture.kills import upload
from tests.torture.stage import Outcome, Stage, check_database, rows, start_again, until

CLIENTS = 4
CONVERSATIONS = 300
MAX_SECONDS_OF_AN_UPGRADE = 1.0
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def backups(stage: Stage) -> Outcome:
    """Back up while questions and documents come in; what was acknowledged before it began is in the copy."""
    outcome, stub = Outcome(), stage.echo(0.002)
    server = stage.server(stub.url)
    server.start("/readyz")
    number = 0
    for again in stage.rounds(1, 20):
        over, acknowledged = threading.Event(), set(answers_of(server))
        upload(server, f"geese{again}.txt", f"Geese number {again} hiss. " * 50)
        server.wait_for_documents()

        def work(over: threading.Event = over) -> None:
            nonlocal number
            while not over.is_set():
                asked = [Asked(server, number + n) for n in range(CLIENTS)]
                number += CLIENTS
                ask_all(asked)

        worker = threading.Thread(target=work)
        worker.start()
        until(lambda: number > 2 * CLIENTS, 20)
        acknowledged = set(answers_of(server))
        file = stage.folder / f"backup{again}.zip"
        _run(server, "backup", str(file))
        over.set()
        worker.join()
        _check_copy(stage, server, file, acknowledged, again, outcome)
        file.unlink()
        outcome.tried += 1
    return outcome


def _check_copy(
    stage: Stage, server: ServerProcess, file: Path, acknowledged: set[str], again: int, outcome: Outcome
) -> None:
    """Restore a copy elsewhere, compare it, and let it answer."""
    folder = stage.folder / f"copy{again}"
    folder.mkdir()
    copy = stage.server(server.environment["OPENAI_BASE_URL"], folder=folder)
    _run(copy, "restore", str(file))
    kept = answers_of(copy)
    outcome.lost += [f"{question} is not in the copy" for question in acknowledged - set(kept)]
    for question in acknowledged & set(kept):
        if kept[question] != answer_to(int(question.split()[1])) and kept[question] != answers_of(server)[question]:
            outcome.lost.append(f"{question}: {kept[question]!r} is in the copy")
    for table in ("documents", "chunks", "embeddings"):
        before, after = (rows(one, f"SELECT COUNT(*) FROM {table}")[0][0] for one in (server, copy))
        if after != before:
            outcome.lost.append(f"{after} of {before} {table} are in the copy")
    checked = _run(copy, "doctor")
    if "Everything is consistent." not in checked:
        outcome.wrong.append(checked)
    copy.start("/readyz")
    Asked(copy, 10**6 + again).ask()
    check_database(copy, outcome)
    copy.kill()


def _run(server: ServerProcess, *words: str) -> str:
    """Run a command on a server's data, and return what it says."""
    program = [sys.executable, "app.py", *words]
    ran = subprocess.run(
        program, cwd=PROJECT, env=server.environment, capture_output=True, text=True, timeout=120, check=False
    )
    return ran.stdout + ran.stderr


def upgrades(stage: Stage) -> Outcome:
    """Start without a database and on data of every older schema, with a kill in the midst of each upgrade."""
    outcome, stub = Outcome(), stage.echo()
    older = ["", *sorted(path.name[:4] for path in (MIGRATIONS / "versions").glob("0*.py"))[:-1]]
    for number in stage.rounds(2, 10 * len(older)):
        revision = older[-1 - number % len(older)]
        folder = stage.folder / f"schema{number}"
        (folder / "data").mkdir(parents=True)
        server = stage.server(stub.url, folder=folder)
        if revision:
            _fill(server.data, revision)
        server.launch()
        time.sleep(stage.chance.uniform(0, MAX_SECONDS_OF_AN_UPGRADE))
        server.kill()
        start_again(server, outcome)
        if revision and (len(kept := answers_of(server)) != CONVERSATIONS or set(kept.values()) != {"They hiss."}):
            outcome.lost.append(f"from {revision}: {len(kept)} of {CONVERSATIONS} conversations")
        if rows(server, "SELECT version_num FROM alembic_version") != [(SCHEMA_REVISION,)]:
            outcome.wrong.append(f"from {revision or 'nothing'}: not upgraded")
        check_database(server, outcome)
        server.kill()
        outcome.tried += 1
    return outcome


def _fill(data: Path, revision: str) -> None:
    """Make a database of an older schema, and put conversations into it."""
    database = Database(sqlite_url(data))
    config = Config(str(MIGRATIONS / "alembic.ini"))
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = database.engine
    command.upgrade(config, revision)
    tables = MetaData()
    with database.write() as connection:
        tables.reflect(connection, only=["conversations", "turns", "messages"])
        numbers = range(1, CONVERSATIONS + 1)
        connection.execute(
            insert(tables.tables["conversations"]),
            [
                {"id": n, "title": "Geese", "created_at": MOMENT, "updated_at": MOMENT, "overrides": {}, "turns": 1}
                | {"visible_turns": 1, "visible_messages": 2}
                for n in numbers
            ],
        )
        connection.execute(
            insert(tables.tables["turns"]),
            [
                {"id": n, "conversation_id": n, "number": 1, "status": "completed", "visible": True, "owner": ""}
                | {"request": {}, "created_at": MOMENT}
                for n in numbers
            ],
        )
        connection.execute(
            insert(tables.tables["messages"]),
            [
                {"turn_id": n, "position": position, "role": role, "content": content}
                for n in numbers
                for position, role, content in ((0, "user", f"Question {n}"), (1, "assistant", "They hiss."))
            ],
        )
    database.close()
