"""A public web site, simulated by a server on loopback: names, addresses and responses are scripted."""

import socket
import threading
from collections.abc import Callable

import httpx2

from rag_assistant.runtime.public_http import is_public

PUBLIC = "93.184.215.14"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=latin-1\r\n"
Answer = Callable[[socket.socket, str], None]


class Site:
    """A server on loopback to which every connection to a public address is routed."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[str] = []
        self.connected: list[str] = []
        self.names: dict[str, list[str]] = {"example.org": [PUBLIC]}
        self.resolved = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = b""
                while b"\r\n\r\n" not in request:
                    piece = connection.recv(4096)
                    if not piece:
                        return
                    request += piece
                self.requests.append(request.decode())
                path = self.requests[-1].split(" ")[1]
                self.answers[path](connection, path)
            except OSError:
                return

    def close(self) -> None:
        self._listener.close()

    def resolve(self, host: str, port: int) -> list[str]:
        self.resolved += 1
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return self.names[host]

    def network(self) -> httpx2.BaseTransport:
        return Rerouted(self.port, self.connected)


class Rerouted(httpx2.HTTPTransport):
    """A transport that routes every public address to a port of this machine."""

    def __init__(self, port: int, connected: list[str]) -> None:
        super().__init__(trust_env=False)
        self._port = port
        self._connected = connected

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        address, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        assert is_public(address), "nothing else may ever be connected to"
        self._connected.append(f"{address}:{port}")
        request.url = request.url.copy_with(host="127.0.0.1", port=self._port)
        return super().handle_request(request)


def sends(content: bytes, head: bytes = OK, length: bool = True) -> Answer:
    def answer(connection: socket.socket, path: str) -> None:
        said = b"Content-Length: %d\r\n" % len(content) if length else b""
        connection.sendall(head + said + b"\r\n" + content)

    return answer


def leads_to(url: str) -> Answer:
    return sends(b"", b"HTTP/1.1 302 Found\r\nLocation: " + url.encode() + b"\r\n")
