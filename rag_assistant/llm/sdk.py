"""The OpenAI SDK's client for every endpoint, over a transport that bounds responses.

Importing this module loads the SDK, which takes half a second: import it where it is needed.
"""

import httpx  # noqa: F401 - the SDK looks at it where it is loaded; Chroma's thread may be halfway through loading it.
import httpx2
import openai

from rag_assistant.runtime.bounded_http import BoundedTransport

# What an endpoint may send, however long it takes. Streams, some 300 bytes a token, aren't buffered.
MAX_BODY_BYTES = 16_000_000
MAX_STREAM_BYTES = 256_000_000
# An answer's events as plain JSON.
ANSWER = openai.Stream[object]


class _Client(openai.OpenAI):
    def platform_headers(self) -> dict[str, str]:
        """Send nothing about this machine: the SDK would find it out with a program that inherits our keys."""
        return {}


def open_client(
    base_url: str, api_key: str | None, max_bytes: int = MAX_BODY_BYTES, max_stream_bytes: int = 0
) -> openai.OpenAI:
    """Return a client without retries or redirects."""
    http = httpx2.Client(transport=BoundedTransport(max_bytes, max_stream_bytes))
    return _Client(base_url=base_url, api_key=api_key or "none", max_retries=0, http_client=http)


def timeouts(connect_seconds: float, seconds: float | None = None) -> httpx2.Timeout:
    """Return the timeout for connecting, and for each read; ``None``: the watchdog's job."""
    return httpx2.Timeout(seconds, connect=connect_seconds)
