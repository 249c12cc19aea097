"""What a window forgets and recall brings back: is the published answer in what the model sees?

Needs bfcl_memory of the shared data. Each user message of a scenario's sessions is a turn; then each question is asked.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.stage import PROJECT, open_database
from rag_assistant.conversations.prompts import INSTRUCTIONS, question_message
from rag_assistant.conversations.window import load_window, rules_for
from rag_assistant.history import fit_history
from rag_assistant.records import Question
from rag_assistant.retrieval.tokenize import query_words, search_words
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.turns import TurnStore

DATA = PROJECT.parent / "shared" / "data" / "bfcl_memory"
RECALLED = (0, 1, 2, 3, 5, 8, 10)
WINDOW = 10


def main() -> None:
    """Print the share of questions whose answer the model sees, by how many turns are recalled."""
    if not DATA.exists():
        print("Recall is not measured: bfcl_memory of the shared data is not on this machine.")
        return
    sessions, questions = read("prereq_conversations.jsonl"), read("questions.jsonl")
    seen: dict[int, int] = defaultdict(int)
    characters: dict[int, int] = defaultdict(int)
    asked = 0
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        for scenario in sorted({question["scenario"] for question in questions}):
            conversation_id = talk(database, [one for one in sessions if f"-{scenario}-" in one["id"]])
            if conversation_id is None:
                continue
            for question in questions:
                if question["scenario"] != scenario:
                    continue
                asked += 1
                text = question["question"][0][0]["content"]
                for recalled in RECALLED:
                    shown = prompt(database, conversation_id, text, recalled)
                    before_question = shown.removesuffix(text)
                    characters[recalled] += len(before_question)
                    seen[recalled] += any(gold.lower() in before_question.lower() for gold in question["ground_truth"])
        database.close()
    print(f"{asked} questions, window of {WINDOW} turns\n")
    print("| recalled turns | answer is in the prompt | characters in the prompt |\n|---|---|---|")
    for recalled in RECALLED:
        print(f"| {recalled} | {seen[recalled] / asked:.0%} | {characters[recalled] // asked:,} |")


def read(name: str) -> list[dict[str, Any]]:
    """Return the lines of a file of the data set."""
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines() if line]


def talk(database: Any, sessions: list[dict[str, Any]]) -> int | None:
    """Keep every user message of some sessions as a turn of one conversation, and return the conversation's id."""
    turns = TurnStore(database, "bench", lambda text: " ".join(search_words(text)))
    conversation_id: int | None = None
    for session in sessions:
        for said in session["question"]:
            for message in said:
                if message["role"] == "user":
                    turn, _ = turns.accept(Question(message["content"], conversation_id), "bench")
                    turns.finish(turn, "completed", "I see.")
                    conversation_id = turn.conversation_id
    return conversation_id


def prompt(database: Any, conversation_id: int, question: str, recalled: int) -> str:
    """Return all text that the model would see of a question, as an answer puts it together."""
    history = HistoryStore(database)
    conversation = ConversationManager(database).get(conversation_id)
    settings = Settings(max_history_turns=WINDOW)
    next_turn = conversation.turns + 1
    window = load_window(history, conversation, next_turn, rules_for(conversation, settings), settings)
    before = [{"role": "system", "content": INSTRUCTIONS}, *window.messages]
    kept = fit_history([*before, {"role": "user", "content": question}], window.policy).receipt.kept_turns
    turns = history.recall(conversation, query_words(question), next_turn, kept, recalled)
    fitted = fit_history([*before, question_message(question, (), turns)], window.policy)
    return "\n".join(message["content"] for message in fitted.messages)


if __name__ == "__main__":
    main()
