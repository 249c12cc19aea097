"""Finds model servers that run on this machine, at their default ports."""

import http.client
import json
import re
import threading
import time
from collections.abc import Mapping

from msgspec import Struct

# Defaults: docs.ollama.com, lmstudio.ai/docs, llama.cpp's server README.
PORTS = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080}
TIMEOUT_SECONDS = 0.3
MAX_WAIT_SECONDS = 1.0
CACHED_SECONDS = 5.0
MAX_LIST_BYTES = 1_000_000
# Names of models that embed, rank or transcribe, and can't chat.
NOT_FOR_CHAT = re.compile(r"embed|rerank|minilm|whisper|(?<![a-z0-9])(?:bge|e5|gte)(?![a-z0-9])", re.IGNORECASE)


class LocalServer(Struct, frozen=True):
    """A server that lists models; ``models`` are those that can chat. ``name`` is the product with this port."""

    name: str
    port: int
    models: tuple[str, ...]

    @property
    def settings(self) -> dict[str, str]:
        """The settings that connect its first model."""
        return {"openai_base_url": f"http://127.0.0.1:{self.port}/v1", "openai_model": self.models[0]}


class LocalServers:
    """Looks for model servers on request, and caches the result briefly. Nothing leaves this machine."""

    def __init__(self, own_port: int, ports: Mapping[str, int] = PORTS) -> None:
        self._ports = {name: port for name, port in ports.items() if port != own_port}
        self._lock = threading.Lock()
        self._servers: list[LocalServer] = []
        self._looked_at: float | None = None

    def find(self) -> list[LocalServer]:
        """Return the servers that are running now."""
        with self._lock:
            if self._looked_at is None or time.monotonic() - self._looked_at > CACHED_SECONDS:
                self._servers, self._looked_at = self._look(), time.monotonic()
            return self._servers

    def _look(self) -> list[LocalServer]:
        """Ask all ports at once, and ignore those that don't answer in time."""
        servers: dict[str, LocalServer] = {}
        threads = [
            threading.Thread(target=_ask, args=(name, port, servers), name="local servers", daemon=True)
            for name, port in self._ports.items()
        ]
        end = time.monotonic() + MAX_WAIT_SECONDS
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return [servers[name] for name in self._ports if name in servers]


def _ask(name: str, port: int, servers: dict[str, LocalServer]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        listed = json.loads(connection.getresponse().read(MAX_LIST_BYTES))["data"]
        models = tuple(str(one["id"]) for one in listed or () if not NOT_FOR_CHAT.search(str(one["id"])))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return  # Nothing there, or something else.
    finally:
        connection.close()
    servers[name] = LocalServer(name, port, models)
