"""A canary in the place of every secret setting, an endpoint that repeats its key, and where any of them turned up."""

import io
import json
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import make_url

from rag_assistant.settings.schema import SECRET
from tests.testkit.stub_model import Reply, Seen, StubModel

PROJECT = Path(__file__).resolve().parents[2]
CANARIES = {name: f"canary-{name.replace('_', '-')}-7fca1e" for name in SECRET}
BODY = b'{"error": {"message": "Incorrect API key provided: %s."}}'


def secret_settings(stub: StubModel, database: str | None, kept: Path) -> dict[str, str]:
    """Return settings that use every secret, as variables."""
    code = f"import runpy, sys; sys.path.insert(0, {str(PROJECT)!r}); runpy.run_module('tests.testkit.tool_server', "
    words = [sys.executable, "-c", f"{code}run_name='__main__', alter_sys=True)", "stdio"]
    values: dict[str, Any] = {
        "openai_api_key": CANARIES["openai_api_key"],
        "embedder": "endpoint:e5",
        "embedding_base_url": stub.url,
        "embedding_api_key": CANARIES["embedding_api_key"],
        "chroma_headers": json.dumps({"Authorization": CANARIES["chroma_headers"]}),
        "rerank_model": "order",
        "rerank_base_url": stub.url,
        "rerank_api_key": CANARIES["rerank_api_key"],
        "oidc_client_secret": CANARIES["oidc_client_secret"],
        "smtp_url": "smtp+plain://127.0.0.1:9",
        "smtp_from": "assistant@example.org",
        "smtp_user": "assistant",
        "smtp_password": CANARIES["smtp_password"],
    }
    if find_spec("mcp") is not None:
        values["mcp_servers"] = json.dumps({"test": [*words, str(kept / CANARIES["mcp_servers"])]})
    if database is not None:
        url = make_url(database).set(password=CANARIES["database_url"])
        values["database_url"] = url.render_as_string(hide_password=False)
    return {name.upper(): value for name, value in values.items()}


def echoing(seen: Seen, status: int) -> Reply:
    """Return the error of an endpoint that repeats the header with the key."""
    return Reply(status=status, body=BODY % seen.headers["authorization"].encode())


class Found:
    """What was seen, by where: an answer, a page, the log, a process."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def add(self, place: str, content: bytes | str) -> None:
        """Keep a text; of an archive, those in it."""
        if isinstance(content, bytes) and content.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                for name in packed.namelist():
                    self.add(f"{place} {name}", packed.read(name))
            return
        self.texts.append((place, content if isinstance(content, str) else content.decode(errors="replace")))

    def ask(self, client: FlaskClient, method: str, path: str, **more: Any) -> int:
        """Send a request and keep all that came back."""
        response = client.open(path, method=method, buffered=True, **more)
        self.add(f"{method} {path}", f"{response.headers}")
        self.add(f"{method} {path}", response.data)
        return response.status_code

    def hits(self, canaries: dict[str, str]) -> list[tuple[str, str]]:
        """Return which canary stands where."""
        return sorted(
            {(name, place) for place, text in self.texts for name, canary in canaries.items() if canary in text}
        )
