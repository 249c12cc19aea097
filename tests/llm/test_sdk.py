"""What of the OpenAI SDK is loaded."""

import importlib
import subprocess
import sys

import pytest

from rag_assistant.llm.sdk import load_sdk
from tests.testkit.server_process import PROJECT


def test_the_sdk_is_loaded_without_aiohttp_which_whoever_needs_it_still_gets() -> None:
    pytest.importorskip("aiohttp")
    code = (
        "import sys; from rag_assistant.llm.sdk import load_sdk; load_sdk(); "
        "print('openai' in sys.modules, 'aiohttp' in sys.modules); import aiohttp; print(aiohttp.__name__)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PROJECT)
    assert said.split() == ["True", "False", "aiohttp"]


def test_of_the_sdk_a_chat_loads_the_client_alone_and_whoever_needs_more_still_gets_it() -> None:
    code = """
import sys
from rag_assistant.llm.sdk import headers_of, sdk_client
with sdk_client(base_url="http://127.0.0.1:9/v1", api_key="secret") as client:
    print(headers_of(client)["Authorization"])
import openai
types = [name for name in sys.modules if name.startswith("openai.types.")]
print(issubclass(openai.APIStatusError, openai.OpenAIError), *types)
print(openai.types.CreateEmbeddingResponse.__name__, openai.AsyncOpenAI.__name__)
print(openai.OpenAI in type(client).__mro__)
"""
    said = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PROJECT).splitlines()
    assert said == [
        "Bearer secret",
        "True openai.types.shared openai.types.shared.oauth_error_code",
        "CreateEmbeddingResponse AsyncOpenAI",
        "True",
    ]


def test_what_the_sdk_has_not_is_missing_as_ever() -> None:
    load_sdk()
    with pytest.raises(AttributeError, match="NoSuchName"):
        importlib.import_module("openai").NoSuchName  # noqa: B018 - the access is what fails
