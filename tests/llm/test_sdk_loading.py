"""Loading the SDK while other threads load what it looks at."""

import subprocess
import sys

import pytest


@pytest.mark.long
def test_with_the_sdk_httpx_is_loaded_whole() -> None:
    # The SDK asks ``sys.modules`` for it: Chroma's thread, halfway through loading it, broke a request with that.
    program = "import sys, rag_assistant.llm.sdk; sys.modules['httpx'].Response"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
