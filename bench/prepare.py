"""(a) Prepare a question: read the window and fit it, in conversations of 10 to 1,000,000 messages."""

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.stage import add_conversation, open_database
from rag_assistant.conversations.prompts import PROMPTS
from rag_assistant.conversations.window import load_window, rules_for
from rag_assistant.history import FittedHistory, fit_history
from rag_assistant.records import Question, Turn
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database

REPEATS = 500


def main() -> None:
    """Print the CPU time and the work of SQLite for each size."""
    print("| messages stored | CPU us per question | messages read | SQLite steps |\n|---|---|---|---|")
    for size in (10, 1_000, 100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            database = open_database(Path(folder))
            turns = TurnStore(database, "bench", str.lower)
            conversation_id = add_conversation(database, size // 2)
            turn, _ = turns.accept(Question("And now?", conversation_id), "bench")
            fitted = prepare(database, turn)
            began = time.process_time()
            for _ in range(REPEATS):
                prepare(database, turn)
            used = (time.process_time() - began) / REPEATS
            read = len(fitted.messages) - 2 - fitted.history_trimmed
            print(f"| {size:,} | {used * 1e6:.0f} | {read} | {sqlite_steps(database, turn)} |", flush=True)
            database.close()


def prepare(database: Database, turn: Turn) -> FittedHistory:
    """Read a turn's conversation and its window, and fit it, as an answer does."""
    settings = Settings()
    conversation = ConversationManager(database).get(turn.conversation_id)
    rules = rules_for(conversation, settings, turn)
    window = load_window(HistoryStore(database), conversation, turn.number, rules, settings)
    system = {"role": "system", "content": PROMPTS["with_passages"]}
    return fit_history([system, *window.messages, {"role": "user", "content": turn.question}], window.policy)


def sqlite_steps(database: Database, turn: Turn) -> int:
    """Return how many virtual machine steps SQLite takes to read the window."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    conversation = ConversationManager(database).get(turn.conversation_id)
    with database.read() as connection:
        raw: Any = connection.connection.dbapi_connection
    raw.set_progress_handler(count, 1)
    HistoryStore(database).past(conversation, turn.number, 5)
    raw.set_progress_handler(None, 0)
    return steps
