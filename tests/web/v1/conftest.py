"""A client of OpenAI's own."""

from collections.abc import Iterator

import httpx2
import openai
import pytest


@pytest.fixture
def sdk(served: str) -> Iterator[openai.OpenAI]:
    # To load the certificates that nothing here needs takes longer than most tests.
    plain = httpx2.Client(verify=False)
    with openai.OpenAI(base_url=served, api_key="not-needed", max_retries=0, http_client=plain) as client:
        yield client
