"""A client that is generated from the description, with types, talks to the server."""

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import upload

PROJECT = Path(__file__).resolve().parents[3]
GENERATOR = PROJECT / ".venv-tools" / "bin" / "openapi-python-client"
pytestmark = [
    pytest.mark.skipif(not GENERATOR.exists(), reason="needs openapi-python-client, which make test installs"),
    pytest.mark.filterwarnings("ignore"),
    # That the description is true of what comes, test_document.py asks every time.
    pytest.mark.long,
]


@pytest.fixture
def generated(client: FlaskClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a client made from /openapi.json, from which it can be imported."""
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(client.get("/openapi.json").json))
    config = tmp_path / "config.yml"
    config.write_text(
        "package_name_override: made_client\nproject_name_override: made-client\npost_hooks: []\n"
        # It knows neither pictures, archives nor lines of JSON, only bytes.
        "content_type_overrides:\n  image/*: application/octet-stream\n"
        "  application/x-ndjson: application/octet-stream\n  application/zip: application/octet-stream\n"
    )
    files = ["--path", document, "--output-path", tmp_path / "made", "--config", config]
    command = [str(GENERATOR), "generate", "--meta", "none", *map(str, files)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "WARNING" not in done.stdout + done.stderr, done.stdout + done.stderr
    shutil.move(tmp_path / "made", tmp_path / "made_client")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "made_client"
    for name in [name for name in sys.modules if name.startswith("made_client")]:
        del sys.modules[name]


def call(name: str, **fields: Any) -> Any:
    """Call an operation of the generated client."""
    return importlib.import_module(f"made_client.api.{name}").sync(**fields)


def test_a_generated_client_asks_and_reads_typed_answers(
    generated: Path, client: FlaskClient, served: str, stub: StubModel
) -> None:
    upload(client, "A document may be up to 50 MB large.", "limits.txt")
    stub.default = Reply("50 MB [1].")
    models: Any = importlib.import_module("made_client.models")
    made: Any = importlib.import_module("made_client").Client(base_url=served.removesuffix("/v1"))
    body = models.QueryBody(question="How large may a document be?", max_history_turns=3)
    answer = call("questions_and_turns.api_query", client=made, body=body)
    assert isinstance(answer, models.TurnAnswer)
    assert (answer.answer, answer.history_trimmed, answer.history.turns_kept) == ("50 MB [1].", False, 0)
    assert answer.sources[0].document == "limits.txt"
    listed = call("conversations.conversations_api_conversations", client=made, limit=5)
    assert [one.conversation_id for one in listed.conversations] == [answer.conversation_id]
    refused = call("questions_and_turns.api_turn", client=made, turn_id=99)
    assert isinstance(refused, models.ErrorAnswer)
    assert refused.error.type_ == "TurnNotFound"
    documents = call("documents.documents_api_documents", client=made)
    assert documents.documents[0].state == "ready"


def test_every_module_of_a_generated_client_can_be_imported(generated: Path) -> None:
    for path in sorted(generated.rglob("*.py")):
        importlib.import_module(".".join(path.relative_to(generated.parent).with_suffix("").parts))
