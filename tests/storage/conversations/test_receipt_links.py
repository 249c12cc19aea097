"""The chain of receipts on both engines: joined by two at once, and valid after a turn was erased."""

from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from rag_assistant.history.receipt_chain import hash_of_link
from rag_assistant.records import Question
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.receipt_links import ReceiptChain
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from tests.conftest import both_engines


@both_engines
def test_receipts_join_once_and_an_erased_turn_leaves_its_hashes(database: Database) -> None:
    turns, chain, said, conversation_id = TurnStore(database, "here", str.lower), ReceiptChain(database), [], None
    for n in range(1, 5):
        turn, _ = turns.accept(Question(f"Question {n}", conversation_id), "t")
        conversation_id = turn.conversation_id
        said.append({"role": "user", "content": turn.question})
        receipt = {"request": {"messages": list(said)}, "kept_turns": list(range(1, n)), "prefix_messages": n - 1}
        turns.keep_receipt(replace(turn, history={"max_history_turns": 5}), receipt | {"left_out": []})
        said.append({"role": "assistant", "content": f"Answer {n}"})
        turns.finish(turn, "completed", f"Answer {n}")
    assert conversation_id is not None
    number = conversation_id
    with ThreadPoolExecutor(3) as pool:
        readings = list(pool.map(lambda _: list(chain.links(number)), range(3)))
    assert readings[0] == readings[1] == readings[2]
    assert [one["position"] for one in readings[0]] == [1, 2, 3, 4]
    TurnEraser(database, str).erase(turns.page(number, 9, None)[1].id)
    links = list(chain.links(number))
    assert [hash_of_link(one) for one in links] == [one["hash"] for one in readings[0]]
    assert "Question 2" not in str(links)
    assert "Question 1" in str(links)
