"""What servers say of a model's context at addresses of their own is understood, and nothing else is taken for it."""

from typing import Any

import pytest

from rag_assistant.llm import client as client_module
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import OWN_ADDRESSES, ModelClient
from rag_assistant.llm.endpoint import Endpoint
from tests.testkit.stub_model import StubModel
from tests.web.conftest import timeouts

LOADED = {"name": "stub-model", "context_length": 4096}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/ps", {"models": [{"name": "other", "context_length": 9}, LOADED]}),
        ("/api/ps", {"models": [LOADED | {"name": "stub-model:latest"}]}),
        ("/api/show", {"parameters": 'temperature 0.7\nnum_ctx                  4096\nstop "<|eot|>"'}),
        ("/props", {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1}),
        ("/api/v0/models", {"data": [{"id": "stub-model", "state": "loaded", "loaded_context_length": 4096}]}),
    ],
)
def test_each_server_tells_its_limit_in_its_own_words(path: str, body: dict[str, Any]) -> None:
    assert OWN_ADDRESSES[path](body, "stub-model") == 4096


@pytest.mark.parametrize("path", OWN_ADDRESSES)
@pytest.mark.parametrize(
    "body",
    [
        *([], 7, None, {}, {"models": [None], "data": [None]}, {"parameters": 7, "default_generation_settings": []}),
        {"models": [LOADED | {"context_length": "9"}], "data": [{"id": "stub-model", "loaded_context_length": True}]},
        {"models": [LOADED | {"name": "other"}], "parameters": "num_ctx", "default_generation_settings": {"n_ctx": 0}},
    ],
)
def test_what_says_something_else_tells_no_limit(path: str, body: Any) -> None:
    assert OWN_ADDRESSES[path](body, "stub-model") is None


def test_only_a_server_in_our_own_network_or_one_that_lists_models_as_such_servers_do_is_asked(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.own_addresses["/props"] = {"default_generation_settings": {"n_ctx": 4096}}
    client, endpoint = ModelClient(lambda: timeouts(connect=5.0)), Endpoint(stub.url, None, "stub-model")
    assert client.limit_of_loaded(endpoint) == 4096
    monkeypatch.setattr(client_module, "getaddrinfo", lambda *_: [(0, 0, 0, "", ("8.8.8.8", 0))])
    assert client.listed(endpoint, ModelCall())
    assert client.limit_of_loaded(endpoint) is None
    stub.models[0]["owned_by"] = "llamacpp"
    client.listed(endpoint, ModelCall())
    assert client.limit_of_loaded(endpoint) == 4096
    client.close()
