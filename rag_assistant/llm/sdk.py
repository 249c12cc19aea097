"""The OpenAI SDK, without what no chat needs of it, and its client, without its account of this machine.

The SDK finds that out with a program of the system (``uname``), which would get our environment with the keys in it,
and tells it to every endpoint.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_assistant.llm.failures import cause_of, reason_given

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIStatusError, OpenAI

    from rag_assistant.records.errors import AssistantError

# These load everything that the SDK knows, such as each type of each request: 480 modules, 13 MB, 0.5 s.
LATE_PACKAGES = ("openai", "openai.types", "openai.types.shared", "openai.lib")

_loading = threading.RLock()
_not_loaded: set[str] = set()


class LatePackage(ModuleType):
    """A package that is loaded when it is asked for a name that it has not; modules of it can be loaded before."""

    def __getattr__(self, name: str) -> Any:
        # With an underscore begin its modules, and what the import system looks for.
        if not name.startswith("_"):
            with _loading:
                if self.__name__ in _not_loaded:
                    _not_loaded.remove(self.__name__)
                    self.__spec__.loader.exec_module(self)  # type: ignore[union-attr] # it came with a loader
        return super().__getattribute__(name)


def load_sdk() -> None:
    """Load the client of the SDK and its errors; whoever asks for anything else of it gets that, too."""
    with _loading:
        if "openai" in sys.modules:
            return
        for name in LATE_PACKAGES:
            _make_late(name)
        has_aiohttp = "aiohttp" in sys.modules
        # Not to be imported, as Python has it: 7 MB for a client that is not used here.
        sys.modules.setdefault("aiohttp", None)  # type: ignore[arg-type]
        try:
            from openai import _exceptions
            from openai._client import OpenAI
        finally:
            if not has_aiohttp:
                del sys.modules["aiohttp"]
        errors = {name: kind for name, kind in vars(_exceptions).items() if isinstance(kind, type)}
        vars(sys.modules["openai"]).update(errors, OpenAI=OpenAI)


def _make_late(name: str) -> None:
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    package = module_from_spec(spec)
    package.__class__ = LatePackage
    _not_loaded.add(name)
    sys.modules[name] = package


def sdk_client(base_url: str, api_key: str | None, **options: Any) -> OpenAI:
    """Return a client, which retries nothing by itself; ``options`` are those of the SDK."""
    load_sdk()
    import openai

    class Client(openai.OpenAI):
        def platform_headers(self) -> dict[str, str]:
            return {}

    return Client(base_url=base_url, api_key=api_key or "none", max_retries=0, **options)


def headers_of(client: OpenAI) -> dict[str, str]:
    """Return the headers with which a client sends each request, its key among them."""
    headers = {**client.default_headers, **client.auth_headers}
    return {name: value for name, value in headers.items() if isinstance(value, str)}


@contextmanager
def service_failures(
    kind: Callable[[str], AssistantError], where: str, api_key: str | None, timeout_seconds: float
) -> Iterator[None]:
    """Turn what the SDK raises, where no question is asked, into errors of one ``kind`` that say ``where`` it was."""
    import openai

    try:
        yield
    except openai.APIStatusError as error:
        raise kind(f"{where} refused the request ({error.status_code}): {reason_given(error.body, api_key)}") from error
    except openai.APITimeoutError as error:
        raise kind(f"{where} did not answer within {timeout_seconds:g} seconds.") from error
    except openai.APIConnectionError as error:
        raise kind(f"{where} could not be reached{cause_of(error)}.") from error
    except (openai.OpenAIError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise kind(f"{where} gave an answer that is none.") from error


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
