"""A client of OpenAI's own."""

from collections.abc import Iterator

import openai
import pytest


@pytest.fixture
def sdk(served: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served, api_key="not-needed", max_retries=0) as client:
        yield client
