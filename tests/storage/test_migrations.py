"""The schema: from empty to the newest, and the same as the tables say."""

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from msgspec.structs import asdict
from sqlalchemy import text

from rag_assistant.records.errors import StorageFailed
from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
from rag_assistant.retrieval.terms import index_terms, query_terms
from rag_assistant.settings.package_files import MIGRATIONS
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.keywords import KeywordIndex
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.migrate import SCHEMA_REVISION, current_revision, migrate
from rag_assistant.storage.tables import people
from tests.conftest import new_database

# For what PostgreSQL does in its own way; that it can make every migration, each of these tests shows.
both_engines = pytest.mark.parametrize("empty", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database in which nothing is."""
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            url = sqlite_url(tmp_path)
        else:
            url = stack.enter_context(new_database(request.getfixturevalue("postgres_server"), tmp_path))
        opened = Database(url)
        yield opened
        opened.close()


@both_engines
def test_an_empty_database_gets_the_schema_of_the_tables(empty: Database) -> None:
    assert migrate(empty) is True
    with empty.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_ours})
        assert compare_metadata(context, people.metadata) == []
        if empty.is_sqlite:
            made = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql LIKE 'CREATE % WHERE %'")
            conditions = {name: sql.partition(" WHERE ")[2].removesuffix(" = 1") for name, sql in made}
    if empty.is_sqlite:
        indexes = {index for table in people.metadata.tables.values() for index in table.indexes}
        assert conditions == {index.name: index.info["where"] for index in indexes if index.info}


@pytest.mark.parametrize("empty", ["postgresql"], indirect=True)
def test_of_servers_that_start_together_one_makes_the_schema_and_the_others_wait(empty: Database) -> None:
    """On SQLite the lock of the data folder keeps the second one out."""
    databases = [Database(empty.url.render_as_string(hide_password=False)) for _ in range(3)]
    with ThreadPoolExecutor() as threads:
        assert sorted(threads.map(migrate, databases)) == [False, False, True]
    for database in databases:
        database.close()


def is_ours(_object: object, name: str, kind: str, _reflected: bool, _other: object) -> bool:
    return not (kind == "table" and name.startswith(("chunk_words", "turn_words")))


def test_turns_of_older_branches_are_known_as_copies_and_empty_conversations_are_not_listed(empty: Database) -> None:
    upgrade_to(empty, "0004")
    made = "INSERT INTO conversations (id, title, created_at, updated_at, overrides, turns, visible_turns, "
    made += (
        "visible_messages, branched_from) VALUES (:id, 't', '2026-01-01', '2026-01-01', '{}', :turns, 0, 0, :origin)"
    )
    asked = "INSERT INTO turns (conversation_id, number, status, visible, owner, request, created_at) "
    asked += "VALUES (:conversation, :number, 'completed', true, 'here', '{}', '2026-01-01')"
    with empty.write() as connection:
        for number, turns, origin in (
            (1, 2, None),
            (2, 2, '{"conversation_id": 1, "turn": 2}'),
            (3, 3, '{"conversation_id": 2, "turn": 3}'),
            (4, 0, None),
        ):
            connection.execute(text(made), {"id": number, "turns": turns, "origin": origin})
            for n in range(1, turns + 1):
                connection.execute(text(asked), {"conversation": number, "number": n})
    migrate(empty)
    with empty.read() as connection:
        origins = connection.execute(text("SELECT origin_id FROM turns ORDER BY id")).scalars().all()
        listed = connection.execute(text("SELECT id FROM conversations WHERE listed")).scalars().all()
    assert origins == [None, None, 1, None, 1, 4, None]
    assert sorted(listed) == [1, 2, 3]


def test_what_was_said_the_branches_and_the_gaps_are_known_of_an_older_database(empty: Database) -> None:
    upgrade_to(empty, "0007")
    moment = "'2026-01-01'"
    with empty.write() as connection:
        for statement in (
            "INSERT INTO conversations (id, title, created_at, updated_at, overrides, turns, visible_turns, "
            f"visible_messages, branched_from) VALUES (1, 't', {moment}, {moment}, '{{}}', 1, 0, 0, NULL), "
            f"(2, 't', {moment}, {moment}, '{{}}', 0, 0, 0, '{{\"conversation_id\": 1, \"turn\": 1}}')",
            "INSERT INTO turns (id, conversation_id, number, status, visible, owner, request, created_at) "
            f"VALUES (1, 1, 1, 'completed', true, '', '{{}}', {moment})",
            "INSERT INTO messages (turn_id, position, role) VALUES (1, 0, 'user'), (1, 1, 'assistant')",
            "INSERT INTO documents (id, name, media_type, size_bytes, sha256, owner, file, state, chunks, embedded, "
            f"created_at) VALUES (1, 'd', 't', 1, 's', '', '', 'ready', 2, 2, {moment})",
            "INSERT INTO document_texts (document_id, text) VALUES (1, 'aa  bb')",
            'INSERT INTO chunks (id, document_id, position, start, "end", text) '
            "VALUES (1, 1, 0, 0, 2, 'aa'), (2, 1, 1, 4, 6, 'bb')",
        ):
            connection.exec_driver_sql(statement)
    migrate(empty)
    with empty.read() as connection:
        told = "SELECT user_messages, assistant_messages, tool_messages, origin_id FROM conversations ORDER BY id"
        assert connection.execute(text(told)).all() == [(1, 1, 0, None), (0, 0, 0, 1)]
        assert connection.execute(text("SELECT gap FROM chunks ORDER BY id")).scalars().all() == [None, "  "]


@both_engines
def test_older_chunks_wait_to_be_indexed_by_language_and_turns_are_with_their_marks(empty: Database) -> None:
    upgrade_to(empty, "0008")
    moment = "'2026-01-01'"
    words = "VALUES (1, :words)" if empty.is_sqlite else "VALUES (1, to_tsvector('english', :words))"
    key = {"chunk_words": "rowid", "turn_words": "rowid"}
    key = key if empty.is_sqlite else {"chunk_words": "chunk_id", "turn_words": "turn_id"}
    with empty.write() as connection:
        for statement in (
            "INSERT INTO conversations (id, title, created_at, updated_at, overrides, turns, visible_turns, "
            f"visible_messages) VALUES (1, 't', {moment}, {moment}, '{{}}', 2, 0, 0)",
            "INSERT INTO turns (id, conversation_id, number, status, visible, owner, request, created_at) VALUES "
            f"(1, 1, 1, 'completed', true, '', '{{}}', {moment}), (2, 1, 2, 'completed', true, '', '{{}}', {moment})",
            "INSERT INTO messages (turn_id, position, role, content) VALUES (1, 0, 'user', 'हिन्दी?'), "
            "(1, 1, 'assistant', 'yes'), (2, 0, 'user', 'geese?'), (2, 1, 'assistant', 'never indexed')",
            "INSERT INTO documents (id, name, media_type, size_bytes, sha256, owner, file, state, chunks, embedded, "
            f"created_at) VALUES (1, 'd', 't', 1, 's', '', '', 'ready', 2, 2, {moment})",
            'INSERT INTO chunks (id, document_id, position, start, "end", text) VALUES '
            "(1, 1, 0, 0, 2, 'Die Häuser sind auf der Insel und nicht in der Stadt.'), (2, 1, 1, 4, 6, 'किताबें')",
        ):
            connection.exec_driver_sql(statement)
        for table, old in (("chunk_words", "die häuser"), ("turn_words", "ह न द yes")):
            connection.execute(text(f"INSERT INTO {table} ({key[table]}, words) {words}"), {"words": old})
    migrate(empty)
    keywords, chunks = KeywordSearch(KeywordIndex(empty)), ChunkStore(empty)
    assert keywords.search(["die"], 5) == []
    assert chunks.next_to_index(0) == 1
    name, ids, pieces = chunks.to_index(1)
    chunks.index(1, ids, *index_terms(name, pieces))
    assert (chunks.next_to_index(0), keywords.state().languages) == (None, ("german",))
    assert [keywords.search(query_terms(asked, ["german"]), 5)[0][0] for asked in ("Haus", "किताब")] == [1, 2]
    with empty.read() as connection:
        found = {word: TURN_WORDS.best_or_newest(connection, [word], 5) for word in ("हिन्दी", "yes", "geese", "ह")}
    assert found == {"हिन्दी": [1], "yes": [1], "geese": [], "ह": []}
    config = Config(str(MIGRATIONS / "alembic.ini"))
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = empty.engine
    command.downgrade(config, "0018")
    migrate(empty)
    assert chunks.next_to_index(0) is None, "what is indexed does not wait"
    command.downgrade(config, "0008")
    with empty.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM chunk_words")).scalar() == 2


def test_receipts_and_sources_that_were_kept_whole_are_read_as_they_were(empty: Database) -> None:
    upgrade_to(empty, "0008")
    said = [{"role": "system", "content": "Answer. " * 20}, {"role": "user", "content": "Why?"}]
    receipt = {"request": {"model": "m", "messages": said}, "kept_turns": [], "search": {"query": "Why?", "found": 1}}
    source = {"n": 1, "document_id": 1, "document": "d", "page": None, "start": 0, "end": 90, "text": "aa " * 30}
    source |= {"score": 0.5, "section": None, "cited": True, "doubts": [], "offered": [], "cited_in": None}
    kept = {"sources": json.dumps([source]), "search": json.dumps(receipt["search"]), "body": json.dumps(receipt)}
    moment = "'2026-01-01'"
    with empty.write() as connection:
        for statement in (
            "INSERT INTO conversations (id, title, created_at, updated_at, overrides, turns, visible_turns, "
            f"visible_messages) VALUES (1, 't', {moment}, {moment}, '{{}}', 1, 1, 2)",
            "INSERT INTO turns (id, conversation_id, number, status, visible, owner, request, created_at, sources, "
            f"search) VALUES (1, 1, 1, 'completed', true, '', '{{}}', {moment}, :sources, :search)",
            "INSERT INTO messages (turn_id, position, role, content) VALUES (1, 0, 'user', 'Why?')",
            "INSERT INTO receipts (turn_id, body) VALUES (1, :body)",
        ):
            connection.execute(text(statement), {name: kept[name] for name in kept if f":{name}" in statement})
    migrate(empty)
    turns = TurnStore(empty, "here", str)
    assert turns.receipt(1) == receipt
    assert [asdict(one) for one in turns.get(1).sources] == [source]


@both_engines
def test_of_a_long_conversation_what_was_sent_is_read_back_and_erased_after_the_migration(empty: Database) -> None:
    upgrade_to(empty, "0023")
    moment, count = "'2026-01-01'", 230
    shared, secret = "Answer briefly. " * 9, "Of the geese. " * 9
    texts = {"instructions": shared, "secret": secret, "group": json.dumps([[3, 3], [228, 228]])}
    question = {"role": "user", "content": {"~": [["secret"], "Why?"]}}
    system = {"role": "system", "content": {"~": [["instructions"]]}}
    leaning = json.dumps({"query": "x", "by": "words", "leans_on": "Question 120"})
    bodies: dict[int, dict[str, object]] = {
        120: {"request": {"model": "m", "messages": [system, question]}, "kept_turns": []},
        121: {"request": {"model": "m", "messages": [system, [120, 120], [121, 0, 0]]}, "kept_turns": [[120, 120]]},
        229: {"request": {"model": "m", "messages": [system, ["group"], [229, 0, 0]]}, "kept_turns": [[3, 3], 228]},
        230: {"request": {"model": "m", "messages": [system, [225, 229], [230, 0, 0]]}, "kept_turns": [[225, 229]]},
    }
    with empty.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO conversations (id, title, created_at, updated_at, overrides, turns, visible_turns, "
            f"visible_messages) VALUES (1, 't', {moment}, {moment}, '{{}}', {count}, {count}, {2 * count})"
        )
        turns = "INSERT INTO turns (id, conversation_id, number, status, visible, owner, request, created_at, "
        turns += "message_count, search) "
        turns += f"VALUES (:number, 1, :number, 'completed', true, '', '{{}}', {moment}, 2, :search)"
        said = "INSERT INTO messages (turn_id, position, role, content) VALUES (:number, 0, 'user', :question), "
        said += "(:number, 1, 'assistant', 'So.')"
        numbers = range(1, count + 1)
        connection.execute(text(turns), [{"number": n, "search": leaning if n == 124 else None} for n in numbers])
        connection.execute(text(said), [{"number": n, "question": f"Question {n}"} for n in numbers])
        for number, body in bodies.items():
            kept = json.dumps(body | {"prefix_messages": 1})
            connection.execute(text("INSERT INTO receipts VALUES (:number, :body)"), {"number": number, "body": kept})
        for key, one in texts.items():
            new = "INSERT INTO sent_texts (conversation_id, key, text) VALUES (1, :key, :text)"
            connection.execute(text(new), {"key": key, "text": one})
    migrate(empty)
    store, eraser = TurnStore(empty, "here", str), TurnEraser(empty, str)
    assert [said_in(store, number) for number in (229, 230)] == [
        [shared, "Question 3", "So.", "Question 228", "So.", "Question 229"],
        [shared, *(one for n in range(225, 230) for one in (f"Question {n}", "So.")), "Question 230"],
    ]
    assert said_in(store, 120) == [shared, f"{secret}Why?"]
    eraser.erase(120)
    eraser.erase(3)
    assert said_in(store, 121)[1] == "[Erased: 12 characters]"
    assert said_in(store, 229)[1:4] == ["[Erased: 10 characters]", "[Erased: 3 characters]", "Question 228"]
    assert "120" not in str(store.get(124).search)


def said_in(turns: TurnStore, number: int) -> list[str]:
    receipt = turns.receipt(number)
    assert receipt is not None
    return [message["content"] for message in receipt["request"]["messages"]]


def test_documents_of_an_older_database_are_in_one_library_and_belong_to_nobody_yet(empty: Database) -> None:
    upgrade_to(empty, "0008")
    moment = "'2026-01-01'"
    with empty.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO documents (id, name, media_type, size_bytes, sha256, owner, file, state, chunks, embedded, "
            f"created_at) VALUES (1, 'd', 't', 1, 'abc', '', '', 'ready', 0, 0, {moment})"
        )
    migrate(empty)
    with empty.read() as connection:
        kept = "SELECT sha256, content_key, library_id FROM documents"
        assert connection.execute(text(kept)).all() == [("abc", "1 abc", 1)]
        assert connection.execute(text("SELECT id, name, person_id FROM libraries")).all() == [(1, "Documents", None)]
        assert connection.execute(text("SELECT count(*) FROM people")).scalar() == 0


def upgrade_to(database: Database, revision: str) -> None:
    """Bring a database to an older schema."""
    config = Config(str(MIGRATIONS / "alembic.ini"))
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = database.engine
    command.upgrade(config, revision)


def test_a_second_migration_has_nothing_to_do(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    assert current_revision(database) is None
    assert migrate(database) is True
    assert current_revision(database) == SCHEMA_REVISION
    assert migrate(database) is False
    database.close()


def test_the_known_revision_is_the_newest_file() -> None:
    assert max(path.name for path in (MIGRATIONS / "versions").glob("*.py")).startswith(SCHEMA_REVISION)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    migrate(database)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageFailed, match="written by a newer one"):
        migrate(database)
    assert current_revision(database) == "9999"
    database.close()


def test_an_upgrade_leaves_a_copy_from_before_and_the_way_back_is_to_put_it_in_place(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    upgrade_to(database, "0004")
    with database.write() as connection:
        connection.execute(text("CREATE TABLE of_before (id INTEGER)"))
    assert migrate(database) is False
    with database.write() as connection:
        connection.execute(text("DROP TABLE of_before"))
    database.close()
    (tmp_path / "assistant-schema-0004.db").replace(tmp_path / "assistant.db")
    back = Database(sqlite_url(tmp_path))
    assert current_revision(back) == "0004"
    with back.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM of_before")).scalar() == 0
    assert migrate(back) is False
    assert [copy.name for copy in back.copies] == ["assistant-schema-0004.db"]
    back.close()


def test_only_the_newest_copies_are_kept_and_what_is_erased_is_in_none(tmp_path: Path) -> None:
    for revision in ("0001", "0002", "0003"):
        (tmp_path / f"assistant-schema-{revision}.db").touch()
    database = Database(sqlite_url(tmp_path))
    upgrade_to(database, "0004")
    migrate(database)
    assert [copy.name[17:21] for copy in database.copies] == ["0003", "0004"]
    database.forget_deleted()
    assert database.copies == []
    database.close()


def test_without_room_for_the_copy_nothing_is_changed(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    upgrade_to(database, "0004")
    (tmp_path / "assistant-schema-0004.db").mkdir()
    with pytest.raises(StorageFailed, match=r"copied to .*/assistant-schema-0004.db before .* Nothing was changed"):
        migrate(database)
    assert current_revision(database) == "0004"
    database.close()
