"""How much of what a model sees a compaction leaves as it is."""

import pytest

from rag_assistant.conversations.compaction import first_kept_after_compaction
from rag_assistant.history import HistoryPolicy, fit_history
from tests.history.conversations import NOW, turns


@pytest.mark.parametrize(("in_view", "kept"), [(0, 0), (1, 1), (2, 1), (5, 3), (20, 10)])
def test_compaction_keeps_half_of_what_fits_rounded_up(in_view: int, kept: int) -> None:
    fitted = fit_history([*turns(30), NOW], HistoryPolicy(max_history_turns=in_view))
    assert first_kept_after_compaction(fitted, 31) == 31 - kept
