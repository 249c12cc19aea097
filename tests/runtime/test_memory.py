"""Memory is given back some seconds after it was used, once."""

import ctypes

import pytest

from rag_assistant.runtime import memory
from tests.web.conftest import until


def test_it_is_given_back_once_for_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []

    class Library:
        malloc_trim = staticmethod(trimmed.append)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library)
    monkeypatch.setattr(memory, "GIVE_BACK_AFTER_SECONDS", 0.05)
    for _ in range(20):
        memory.give_back_soon()
    until(lambda: trimmed)
    assert trimmed == [0]
    memory.give_back_soon()
    until(lambda: len(trimmed) == 2)


def test_few_arenas_are_shared_unless_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    class Library:
        mallopt = staticmethod(lambda *values: asked.append(values))

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library)
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    memory.limit_arenas()
    monkeypatch.setenv("MALLOC_ARENA_MAX", "8")
    memory.limit_arenas()
    assert asked == [(-8, 2)]


def test_a_c_library_without_it_is_none_the_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    memory.limit_arenas()
    memory._waiting.acquire()
    memory._give_back_later()
    assert not memory._waiting.locked()
