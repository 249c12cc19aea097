"""What of the OpenAI SDK is loaded."""

import subprocess
import sys

import pytest

from testkit.server_process import PROJECT


def test_the_sdk_is_loaded_without_aiohttp_which_whoever_needs_it_still_gets() -> None:
    pytest.importorskip("aiohttp")
    code = (
        "import sys; from rag_assistant.llm.sdk import load_sdk; load_sdk(); "
        "print('openai' in sys.modules, 'aiohttp' in sys.modules); import aiohttp; print(aiohttp.__name__)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PROJECT)
    assert said.split() == ["True", "False", "aiohttp"]
