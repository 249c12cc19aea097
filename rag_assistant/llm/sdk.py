"""The OpenAI SDK, without what it loads for others, and its client, without its account of this machine.

The SDK finds that out with a program of the system (``uname``), which would get our environment with the keys in it,
and tells it to every endpoint.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIStatusError, OpenAI


def load_sdk() -> None:
    """Load the SDK. Where aiohttp is installed, it would load that, too: 7 MB for a client that is not used here."""
    if "openai" in sys.modules or "aiohttp" in sys.modules:
        return
    sys.modules["aiohttp"] = None  # type: ignore[assignment] # Not to be imported, as Python has it.
    try:
        import openai  # noqa: F401
    finally:
        sys.modules.pop("aiohttp", None)


def sdk_client(**options: Any) -> OpenAI:
    """Return a client; ``options`` are those of the SDK."""
    load_sdk()
    import openai

    class Client(openai.OpenAI):
        def platform_headers(self) -> dict[str, str]:
            return {}

    return Client(**options)


def headers_of(client: OpenAI) -> dict[str, str]:
    """Return the headers with which a client sends each request, its key among them."""
    headers = {**client.default_headers, **client.auth_headers}
    return {name: value for name, value in headers.items() if isinstance(value, str)}


def status_error(response: Response) -> APIStatusError:
    """Read a response that refuses a request, and return what the SDK raises for it."""
    import openai

    response.read()
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = response.text.strip()
    told = body.get("error", body) if isinstance(body, dict) else body
    return openai.APIStatusError(f"Error code: {response.status_code}", response=response, body=told)
