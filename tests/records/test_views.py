"""What is told of a turn: what its answer rests on."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from rag_assistant.records import Passage, Turn
from rag_assistant.retrieval.postprocess import number_sources

FOUND = number_sources([Passage(1, 1, "geese.txt", 0, 9, "Seventeen geese.", None, 0.9)])
TURN = Turn(1, 1, 1, "completed", "How many?", "Seventeen.", datetime.now(UTC), sources=FOUND, model="gpt")


@pytest.mark.parametrize(
    ("turn", "support"),
    [
        (TURN, "uncited"),
        (replace(TURN, sources=(replace(FOUND[0], cited=True),)), "cited"),
        (replace(TURN, status="interrupted", model=None), "not_checked"),
        (replace(TURN, sources=(), search={"found": 0}), "nothing_found"),
        (replace(TURN, sources=(), search={"found": 3}), "not_sent"),
        (replace(TURN, sources=()), "not_searched"),
    ],
)
def test_it_is_said_what_an_answer_rests_on(turn: Turn, support: str) -> None:
    assert turn.support == support
