"""A relay in front of a server that counts bytes and round trips."""

import contextlib
import socket
import threading

BYTES_AT_ONCE = 65536


class Relay:
    """Listens on loopback and forwards everything to another port."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.bytes = 0
        # A request after a response: two in a row are one round trip.
        self.round_trips = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop accepting connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                asks = threading.Event()
                for source, target, is_client in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass_on, args=(source, target, asks, is_client), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, asks: threading.Event, is_client: bool) -> None:
        with contextlib.suppress(OSError), source, target:
            while piece := source.recv(BYTES_AT_ONCE):
                with self._lock:
                    self.bytes += len(piece)
                    self.round_trips += is_client and not asks.is_set()
                (asks.set if is_client else asks.clear)()
                target.sendall(piece)
