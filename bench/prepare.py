"""(a) Prepare a question: read the window and fit it, in conversations of 10 to 1,000,000 messages."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.stage import add_conversation, open_database
from rag_assistant.assistant import Assistant
from rag_assistant.choices import choices_for
from rag_assistant.records import Question
from rag_assistant.settings import Settings
from rag_assistant.storage.conversations import ConversationManager
from rag_assistant.storage.turns import TurnStore

REPEATS = 500


def main() -> None:
    """Print the CPU time and the work of SQLite for each size."""
    settings = Settings()
    endpoint: Any = SimpleNamespace(built_in=False, context_tokens=None)
    print("| messages stored | CPU us per question | messages read | SQLite steps |\n|---|---|---|---|")
    for size in (10, 1_000, 100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            database = open_database(Path(folder))
            turns = TurnStore(database, "bench")
            nothing: Any = None
            assistant = Assistant(
                conversations=ConversationManager(database), turns=turns, answers=nothing, documents=nothing,
                retriever=nothing, models=nothing, settings=Settings, most_running=1,
            )  # fmt: skip
            conversation_id = add_conversation(database, size // 2)
            turn, _ = turns.accept(Question("And now?", conversation_id), "bench")
            _, fitted = assistant._fit(turn, endpoint, choices_for(endpoint, settings), settings)
            began = time.process_time()
            for _ in range(REPEATS):
                assistant._fit(turn, endpoint, choices_for(endpoint, settings), settings)
            used = (time.process_time() - began) / REPEATS
            read = len(fitted.messages) - 2 - fitted.history_trimmed
            print(f"| {size:,} | {used * 1e6:.0f} | {read} | {sqlite_steps(database, turns, turn)} |", flush=True)
            database.close()


def sqlite_steps(database: Any, turns: TurnStore, turn: Any) -> int:
    """Return how many steps SQLite's machine takes to read the window."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with database.read() as connection:
        raw = connection.connection.dbapi_connection
    raw.set_progress_handler(count, 1)
    turns.window(turn, 5)
    raw.set_progress_handler(None, 0)
    return steps
