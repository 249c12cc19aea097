"""What a chain of receipts detects and costs: flipped bits, files verified offline, turns erased.

``python -m bench.receipts`` creates 100 conversations of 100 turns with receipts as ``fit_history`` would send them, in
a database of its own.
"""

import io
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean

from msgspec.structs import replace

from rag_assistant.conversations.exchange.export import signed_receipts
from rag_assistant.history.receipt_chain import check_chain
from rag_assistant.records import Question
from rag_assistant.records.errors import InvalidReceipts
from rag_assistant.runtime.signing import Signer, is_signed
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.receipt_links import ReceiptChain
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.migrate import migrate

CONVERSATIONS, TURNS, ERASED, WINDOW = 100, 100, 1_000, 5
PASSAGE = "The keeper lights the lamp at dusk and writes the hour into the book. " * 20


def main() -> None:
    """Print the figures."""
    rng = random.Random(3)
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/bench.db")
        migrate(database)
        turns, chain, signer = TurnStore(database, "bench", str.lower), ReceiptChain(database), Signer(Path(folder))
        ids = [fill(turns, n) for n in range(CONVERSATIONS)]
        first = [timed(partial(file_of, chain, signer, n)) for n in ids]
        files = {n: file_of(chain, signer, n) for n in ids}
        checked = [timed(partial(check, lines)) for lines in files.values()]
        found = sum(is_found(line, rng) for lines in files.values() for line in lines[:-1])
        sizes = [len(line) for lines in files.values() for line in lines[:-1]]
        print(f"{len(sizes):,} receipts of {mean(sizes) / 1000:.1f} kB; a bit flipped in each: {found:,} found")
        print(f"a receipt joins the chain and is written in {1000 * mean(first) / TURNS:.2f} ms")
        print(
            f"checked: {1000 * mean(checked) / TURNS:.2f} ms a receipt, {1000 * max(checked):.0f} ms the slowest file"
        )
        eraser = TurnEraser(database, str)
        gone = rng.sample([(n, number) for n in range(CONVERSATIONS) for number in range(1, TURNS + 1)], ERASED)
        seconds = [timed(partial(eraser.erase, n * TURNS + number)) for n, number in gone]
        after = {n: file_of(chain, signer, n) for n in ids}
        for n, number in gone:
            assert secret_of(n, number).encode() not in b"".join(after[ids[n]])
        assert all(check(lines) for lines in after.values())
        print(f"{ERASED:,} turns erased in {1000 * mean(seconds):.0f} ms each; every chain is valid, no text is left")


def fill(turns: TurnStore, conversation: int) -> int:
    """Create a conversation, and return its id."""
    conversation_id: int | None = None
    said: list[tuple[dict[str, str], dict[str, str]]] = []
    for number in range(1, TURNS + 1):
        turn, _ = turns.accept(Question(f"Where is {secret_of(conversation, number)}?", conversation_id), "Keys")
        conversation_id = turn.conversation_id
        question = {"role": "user", "content": f"<passages>\n{PASSAGE}\n</passages>\n\n{turn.question}"}
        past = [message for pair in said[-WINDOW:] for message in pair]
        system = {"role": "system", "content": "You answer questions about the user's own documents."}
        receipt = {
            "request": {"model": "m", "stream": True, "messages": [system, *past, question]},
            "earlier_requests": [],
            "kept_turns": list(range(max(1, number - WINDOW), number)),
            "left_out": [],
            "prefix_messages": 1 + len(past),
        }
        turn = replace(turn, history={"max_history_turns": WINDOW}, model="m")
        turns.keep_receipt(turn, receipt)
        turns.finish(turn, "completed", f"It is in {secret_of(conversation, number)}.")
        answer = {"role": "assistant", "content": f"It is in {secret_of(conversation, number)}."}
        said.append(({"role": "user", "content": turn.question}, answer))
    assert conversation_id is not None
    return conversation_id


def secret_of(conversation: int, number: int) -> str:
    """Return a word that occurs in one turn only."""
    return f"key-{conversation:03}-{number:03}"


def file_of(chain: ReceiptChain, signer: Signer, conversation_id: int) -> list[bytes]:
    """Return the lines of a conversation's file."""
    return list(signed_receipts(conversation_id, chain.links(conversation_id), signer))


def check(lines: list[bytes]) -> bool:
    """Return whether a file is intact and signed."""
    seal, _ = check_chain(io.BytesIO(b"".join(lines)))
    return is_signed(seal.signed, seal.signature, seal.key)


def is_found(line: bytes, rng: random.Random) -> bool:
    """Return whether a bit flipped in a line is detected in that line."""
    place, bit = rng.randrange(len(line)), rng.randrange(8)
    try:
        check_chain(io.BytesIO(line[:place] + bytes([line[place] ^ (1 << bit)]) + line[place + 1 :]))
    except InvalidReceipts as error:
        return str(error).startswith("Line 1")
    return False


def timed(do: Callable[[], object]) -> float:
    """Return how many seconds a call takes."""
    begun = time.perf_counter()
    do()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
