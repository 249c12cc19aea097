"""Memory is given back some seconds after it was used, once."""

import ctypes

import pytest

from rag_assistant.runtime import memory
from tests.web.conftest import until


def test_it_is_given_back_once_for_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Library:
        malloc_trim = staticmethod(lambda _keep: done.append("given back"))

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library)
    monkeypatch.setattr(memory, "GIVE_BACK_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(memory, "LET_GO_SECONDS", 0)
    for _ in range(20):
        memory.give_back_soon(lambda: done.append("let go"))
    until(lambda: len(done) == 2)
    assert done == ["let go", "given back"]
    memory.give_back_soon(lambda: None)
    until(lambda: len(done) == 3)


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
    monkeypatch.setattr(memory, "LET_GO_SECONDS", 0)
    memory._waiting.acquire()
    memory._give_back_later(lambda: None)
    assert not memory._waiting.locked()
