"""The OpenAI SDK's client, without its account of this machine.

The SDK finds that out with a program of the system (``uname``), which would get our environment with the keys in it,
and tells it to every endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIStatusError, OpenAI


def sdk_client(**options: Any) -> OpenAI:
    """Return a client; ``options`` are those of the SDK."""
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
