"""The OpenAI SDK's client, without its account of this machine.

The SDK finds that out with a program of the system (``uname``), which would get our environment with the keys in it,
and tells it to every endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import OpenAI


def sdk_client(**options: Any) -> OpenAI:
    """Return a client; ``options`` are those of the SDK."""
    import openai

    class Client(openai.OpenAI):
        def platform_headers(self) -> dict[str, str]:
            return {}

    return Client(**options)
