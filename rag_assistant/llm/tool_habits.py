"""What was learnt of each model about tools: whether it takes them, and whether it ever calls one."""

from __future__ import annotations

from rag_assistant.llm.endpoint import Endpoint

# A model that let tools lie so often, where a search would have found something, is offered none any more.
MAX_UNUSED = 2


class ToolHabits:
    """Forgets with the process: a model may be exchanged behind its name."""

    def __init__(self) -> None:
        self._unused: dict[tuple[str, str | None], int] = {}
        self._calls: set[tuple[str, str | None]] = set()

    def takes_tools(self, endpoint: Endpoint) -> bool:
        """Tell whether it is worth while to offer tools."""
        return endpoint.takes_tools and self._unused.get(endpoint.key, 0) < MAX_UNUSED

    def has_called(self, endpoint: Endpoint) -> bool:
        """Tell whether a model has ever called a tool."""
        return endpoint.key in self._calls

    def learn_call(self, endpoint: Endpoint) -> None:
        """Take note that a model called a tool."""
        self._calls.add(endpoint.key)

    def learn_unused(self, endpoint: Endpoint) -> None:
        """Take note that a model answered by itself where a search would have found something."""
        self._unused[endpoint.key] = self._unused.get(endpoint.key, 0) + 1

    def learn_refusal(self, endpoint: Endpoint) -> None:
        """Take note that an endpoint refuses tools."""
        self._unused[endpoint.key] = MAX_UNUSED
