"""Model servers that already listen on this machine, found at the ports that they come with."""

from __future__ import annotations

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

# As their makers set them: docs.ollama.com, lmstudio.ai/docs, llama.cpp's server README.
PORTS = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080}
TIMEOUT_SECONDS = 0.3
MAX_LIST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that lists models; ``model`` is the first one that is not for embedding."""

    name: str
    base_url: str
    model: str


def find_local_servers() -> list[LocalServer]:
    """Return the servers that listen now, asked all at once. Nothing leaves this machine."""
    with ThreadPoolExecutor(len(PORTS)) as pool:
        return [server for server in pool.map(_server_at, PORTS, PORTS.values()) if server is not None]


def _server_at(name: str, port: int) -> LocalServer | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        listed = json.loads(connection.getresponse().read(MAX_LIST_BYTES))["data"]
        models = [str(one["id"]) for one in listed if "embed" not in str(one["id"]).lower()]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None  # Nobody there, or something else.
    finally:
        connection.close()
    return LocalServer(name, f"http://127.0.0.1:{port}/v1", models[0]) if models else None
