"""Which later turns may hold something of a turn is found whatever the runs look like, and no other conversation's."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assistant.history.erasing import joined
from rag_assistant.records import Question
from rag_assistant.storage.conversations.receipts import keep_sent_turns, later_turns_with
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database

RUNS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)).map(lambda pair: (min(pair), max(pair))), max_size=4)


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(sent=st.lists(RUNS, max_size=5), number=st.integers(1, 40))
def test_the_turns_whose_runs_hold_a_turn_are_found(
    database: Database, sent: list[list[tuple[int, int]]], number: int
) -> None:
    store = TurnStore(database, "here", str)
    turn, _ = store.accept(Question("why?"), "t")
    other, _ = store.accept(Question("why?"), "t")
    with database.write() as connection:
        keep_sent_turns(connection, other.conversation_id, 90, [(1, 89)])
        for later, runs in enumerate(sent, 41):
            keep_sent_turns(connection, turn.conversation_id, later, joined(runs))
        found = later_turns_with(connection, turn.conversation_id, number)
    assert found == [later for later, runs in enumerate(sent, 41) if any(a <= number <= b for a, b in runs)]
