"""A library and conversations with a hostile text wherever a text is kept.

They are made over the API with a plain word for each place; in the database each word then becomes the text itself, so
that no check at the entry can keep it out.
"""

import json
import sqlite3
import zlib
from pathlib import Path
from typing import Any

from tests.browser.hostile.payloads import Payload, joined
from tests.browser.talk import call
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

# Where text is kept. The word that stands for it at first is "mark" with the place behind it.
KEPT = (
    "question", "answer", "arguments", "failure", "summary", "title", "deleted", "name", "heading", "tag", "reason",
    "warning", "model", "text",
)  # fmt: skip
# A search for a word that nobody knows would find nothing.
ARGUMENT = "The keeper feeds seventeen geese"


def seed(server: ServerProcess, stub: StubModel, corpus: list[Payload]) -> int:
    """Fill the server's database, and return the id of the hostile document."""
    text = b"# markheading\n\nThere the keeper feeds seventeen white geese.\n\nmarktext\n"
    document_id = add(server, "markname.md", text, "marktag")
    add(server, "broken.pdf", b"%PDF-1.4 nothing", "marktag")
    server.wait_for_documents()
    stub.replies.extend(
        [
            Reply(tool_calls=[call("search_documents", query=ARGUMENT)]),
            Reply("Seventeen [1]. markanswer"),
            Reply("Well."),
            Reply(status=400, body=json.dumps({"error": {"message": "markfailure"}}).encode()),
            Reply("The marksummary: markquestion, markanswer, seventeen."),
        ]
    )
    assert server.call("POST", "/api/query", {"question": "markquestion"})[1]["sources"]
    assert server.call("POST", "/api/query", {"question": "And?", "conversation_id": 1})[0] == 200
    server.call("POST", "/api/query", {"question": "And now?", "conversation_id": 1})
    server.call("PATCH", "/api/conversations/1", {"title": "marktitle"})
    assert server.call("POST", "/api/conversations/1/compact")[0] == 200
    gone = server.call("POST", "/api/query", {"question": "Why?"})[1]["conversation_id"]
    server.call("PATCH", f"/api/conversations/{gone}", {"title": "markdeleted"})
    server.call("DELETE", f"/api/conversations/{gone}")
    with sqlite3.connect(Path(server.environment["DATA_DIR"]) / "assistant.db", timeout=30) as database:
        database.execute("UPDATE documents SET reason = 'markreason' WHERE state = 'failed'")
        database.execute("UPDATE document_texts SET warning = 'markwarning'")
        database.execute("UPDATE turns SET model = 'markmodel', error_message = 'markfailure' WHERE status = 'failed'")
        replace_words(database, {word(place): joined(corpus, place) for place in KEPT})
    database.close()
    return document_id


def word(place: str) -> str:
    """Return what stands for the text of a place at first."""
    return ARGUMENT if place == "arguments" else f"mark{place}"


def add(server: ServerProcess, name: str, content: bytes, tag: str) -> int:
    """Upload a document and return its id."""
    parts = [(f'name="tags"\r\n\r\n{tag}').encode(), f'name="file"; filename="{name}"\r\n\r\n'.encode() + content]
    body = b"".join(b"--boundary\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts)
    media_type = "multipart/form-data; boundary=boundary"
    status, answer = server.send("POST", "/api/documents", body + b"--boundary--\r\n", media_type)
    assert status == 202, answer
    return int(answer["document_id"])


def replace_words(database: sqlite3.Connection, texts: dict[str, str]) -> None:
    """Put each text in the place of its word, in every table, inside of JSON as well."""
    for (table,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        if "fts" in table or "keywords" in table or table.startswith("sqlite_"):
            continue  # What the search is made from, never what is shown.
        columns = database.execute(f'PRAGMA table_info("{table}")').fetchall()
        keys = [column[1] for column in columns if column[5]] or ["rowid"]
        where = " AND ".join(f'"{key}" = ?' for key in keys)
        for _, column, *_ in columns:
            selected = ", ".join(f'"{name}"' for name in [column, *keys])
            for old, *key in database.execute(f'SELECT {selected} FROM "{table}"').fetchall():
                new = replaced(old, texts) if isinstance(old, str) else replaced_packed(old, texts)
                if new != old:
                    database.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {where}', [new, *key])


def replaced_packed(old: Any, texts: dict[str, str]) -> Any:
    """Return a stored value with the words replaced, if it is JSON that is compressed."""
    try:
        return zlib.compress(replaced(zlib.decompress(old).decode(), texts).encode())
    except (TypeError, zlib.error):
        return old


def replaced(old: str, texts: dict[str, str]) -> str:
    """Return a stored text, or stored JSON, with the words replaced."""
    if old[:1] in '[{"' and is_json(old):
        return json.dumps(replaced_within(json.loads(old), texts))
    for word, text in texts.items():
        old = old.replace(word, text)
    return old


def replaced_within(value: Any, texts: dict[str, str]) -> Any:
    """Return a value of JSON with the words replaced in it; the arguments of a tool call are JSON inside of JSON."""
    if isinstance(value, str):
        return replaced(value, texts)
    if isinstance(value, list):
        return [replaced_within(one, texts) for one in value]
    if isinstance(value, dict):
        return {name: replaced_within(one, texts) for name, one in value.items()}
    return value


def is_json(text: str) -> bool:
    """Tell whether a stored text is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
