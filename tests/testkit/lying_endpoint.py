"""A misbehaving endpoint on loopback: raw bytes, endless bodies, or silence."""

import contextlib
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

MAX_PIECES = 200_000
MAX_SILENCE_SECONDS = 60.0
SECONDS_BETWEEN_DRIPS = 0.05
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Shape:
    """What is sent: a beginning, then a piece repeatedly, at once or slowly, silence, or an end."""

    head: bytes
    then: Literal["repeat", "drip", "silence", "close", "reset"] = "close"
    piece: bytes = b""


@contextmanager
def lying_endpoint(shape_of: Callable[[bytes], Shape], sent: list[int] | None = None) -> Iterator[str]:
    """Serve the shape chosen for each request, and yield the base URL. ``sent`` gets the size of each piece."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=play, args=(listening.accept()[0],), daemon=True).start()

    def play(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            shape = shape_of(_request(connection))
            connection.sendall(shape.head)
            if shape.then == "repeat":
                for _ in range(MAX_PIECES):
                    connection.sendall(shape.piece)
                    if sent is not None:
                        sent.append(len(shape.piece))
            elif shape.then == "drip":
                for _ in range(int(MAX_SILENCE_SECONDS / SECONDS_BETWEEN_DRIPS)):
                    connection.sendall(shape.piece)
                    time.sleep(SECONDS_BETWEEN_DRIPS)
            elif shape.then == "silence":
                connection.settimeout(MAX_SILENCE_SECONDS)
                connection.recv(1)
            elif shape.then == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def _request(connection: socket.socket) -> bytes:
    """Read one request with its body."""
    came = connection.recv(65536)
    while b"\r\n\r\n" not in came and (piece := connection.recv(65536)):
        came += piece
    length = LENGTH.search(came)
    while length and len(came.partition(b"\r\n\r\n")[2]) < int(length[1]) and (piece := connection.recv(65536)):
        came += piece
    return came
