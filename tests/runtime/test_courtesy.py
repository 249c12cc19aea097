"""Work in the background rests for a moment while requests come, and not otherwise."""

import pytest

from rag_assistant.runtime import courtesy


def test_who_works_in_the_background_steps_aside_only_while_requests_come(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    rests: list[float] = []
    monkeypatch.setattr("rag_assistant.runtime.courtesy.time.monotonic", lambda: now)
    monkeypatch.setattr("rag_assistant.runtime.courtesy.time.sleep", rests.append)
    monkeypatch.setattr(courtesy, "_last_request", float("-inf"))
    courtesy.step_aside()
    assert rests == []
    courtesy.note_request()
    courtesy.step_aside()
    assert rests == [courtesy.REST_SECONDS]
    now = courtesy.BUSY_SECONDS
    courtesy.step_aside()
    assert len(rests) == 1
