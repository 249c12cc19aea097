"""The process of our own Chroma, which holds a folder of vectors, or speaks to the server of CHROMA_URL.

``chroma_process.py`` starts it. Its input is a socket, from which it reads what to open, and to which it writes how
that goes, line by line. Then it is handed a connected socket for each concurrent caller. So nobody else can reach it,
and it ends when the other end of its input does.
"""

import fcntl
import json
import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

from rag_assistant.runtime.parent import end_with_parent

# How many vectors a search examines. Of the 100 nearest of 100,000, Chroma's default of 100 finds .83, this .97; more
# vectors need more (bench/README.md).
EF_SEARCH = 500
BYTES_TO_WRITE = 1 << 20
SQLITE_BUSY = "(code: 5)"


def main() -> None:
    """Open what the first line says, and serve it until the input ends."""
    control = socket.socket(fileno=0)
    lines = control.makefile("r", encoding="utf-8")
    order = json.loads(lines.readline())

    def tell(state: str, detail: object = "") -> None:
        control.sendall(f"{state} {' '.join(str(detail).split())}\n".encode())

    try:
        collection = opened(order, tell)
    except Exception as error:  # noqa: BLE001 - the process that started this one decides what follows from it
        tell("failed", error)
        return
    if collection is not None:
        tell("ready")
        while sockets := socket.recv_fds(control, 1, 1)[1]:
            Thread(target=serve, args=(collection, Connection(sockets[0]), order["folder"]), daemon=True).start()
    os._exit(0)


def opened(order: dict[str, Any], tell: Callable[..., None]) -> Any:
    """Return the collection of a folder, or of a server; ``None`` if the folder is damaged, which is told."""
    folder = order["folder"]
    if folder is not None:
        claim(Path(folder), tell)
    import chromadb
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if folder is None:
        host, _, port = order["url"].split("//", 1)[1].rstrip("/").partition(":")
        secure = order["url"].startswith("https")
        client = chromadb.HttpClient(host, int(port or (443 if secure else 80)), secure, order["headers"], settings)
        return collection_of(client, order["collection"])
    tell("opening")
    try:
        collection = collection_of(chromadb.PersistentClient(folder, settings), order["collection"])
        check(collection)
    except BaseException as error:  # A panic of Chroma is no Exception.
        if not is_damage(error, folder):
            raise
        tell("damaged", error)
        return None
    return collection


def is_damage(error: BaseException, folder: str | None) -> bool:
    """Return whether an error of Chroma is due to what is in the folder: not to a full disk, or another process."""
    if folder is None or isinstance(error, (OSError, MemoryError)) or SQLITE_BUSY in str(error):
        return False
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(BYTES_TO_WRITE))
    except OSError:
        return False
    return True


def claim(folder: Path, tell: Callable[..., None]) -> None:
    """Lock the folder until this process ends: two on one folder destroy it. Say who holds it, and wait for its end."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell("held", os.read(lock, 20).decode())
        fcntl.flock(lock, fcntl.LOCK_EX)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def collection_of(client: Any, name: str) -> Any:
    """Return a collection. It embeds nothing: vectors only come from SQL."""
    configuration = {"hnsw": {"space": "cosine", "ef_search": EF_SEARCH}}
    return client.get_or_create_collection(name, embedding_function=None, configuration=configuration)


def check(collection: Any) -> None:
    """Read what is only read when it is needed. Raises whatever Chroma does, ValueError if vectors can't be found."""
    some = collection.get(limit=10, include=["embeddings"])
    if some["ids"]:
        nearest = collection.query(query_embeddings=some["embeddings"][:1], n_results=len(some["ids"]), include=[])
        if len(nearest["ids"][0]) < len(some["ids"]):
            raise ValueError("It lacks vectors that it lists.")


def serve(collection: Any, connection: Connection, folder: str | None) -> None:
    """Answer one caller after another, until it closes the connection."""
    with connection, suppress(EOFError, OSError):
        while True:
            method, arguments = connection.recv()
            try:
                answer = "done", getattr(collection, method)(**arguments)
            except BaseException as error:  # noqa: BLE001 - a panic of Chroma is no Exception; the caller is told
                answer = "damaged" if is_damage(error, folder) else "failed", f"{type(error).__name__}: {error}"
            connection.send(answer)


if __name__ == "__main__":
    end_with_parent()
    main()
