"""Model servers on this machine, noticed at their ports: listed with what can chat, and nothing else taken for one."""

import socket
from collections.abc import Iterator

import pytest

from rag_assistant.llm import local_servers
from rag_assistant.llm.local_servers import LocalServer, LocalServers
from tests.testkit.stub_model import StubModel

NOT_OURS = 1


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def unused() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_is_found_with_the_models_that_can_chat(stub: StubModel, silent: int, unused: int) -> None:
    names = ["nomic-embed-text", "bge-m3", "all-minilm:latest", "qwen3:8b", "bge-reranker", "gemma3", "e5-large"]
    stub.models = [{"id": name} for name in names]
    ports = {"LM Studio": silent, "llama.cpp": unused, "Ollama": stub.port}
    (found,) = LocalServers(NOT_OURS, ports).find()
    assert found == LocalServer("Ollama", stub.port, ("qwen3:8b", "gemma3"))
    assert found.settings == {"openai_base_url": stub.url, "openai_model": "qwen3:8b"}


def test_we_do_not_offer_ourselves(stub: StubModel) -> None:
    assert LocalServers(stub.port, {"llama.cpp": stub.port}).find() == []


def test_a_server_that_lists_no_models_as_openai_does_is_none(stub: StubModel) -> None:
    stub.models = [{"name": "no id"}]
    assert LocalServers(NOT_OURS, {"llama.cpp": stub.port}).find() == []


def test_what_was_found_is_kept_for_a_moment(stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = LocalServers(NOT_OURS, {"Ollama": stub.port})
    (found,) = servers.find()
    stub.close()
    assert servers.find() == [found]
    monkeypatch.setattr(local_servers, "CACHED_SECONDS", -1)
    assert servers.find() == []
