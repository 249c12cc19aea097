"""Ask the built-in model ten questions about the guide and look for the right fact in each answer."""

from __future__ import annotations

import tempfile
import time

from rag_assistant.factory import create_app
from rag_assistant.records import Question
from rag_assistant.web.services import Services

# Each question with the facts of which one must stand in the answer.
QUESTIONS = [
    ("How many earlier turns does the model see?", ("5", "five")),
    ("Which kinds of documents can I add?", ("PDF",)),
    ("How do I connect a better model?", ("settings.json", "OPENAI_API_KEY")),
    ("What happens to older turns of a conversation?", ("never deleted", "stay in the conversation")),
    ("How large may a document be?", ("50 MB",)),
    ("Which port does the server listen on?", ("8000",)),
    ("What happens if the server is killed while it writes an answer?", ("interrupted",)),
    ("How do I make a backup?", ("copy the folder data",)),
    ("How long does the assistant wait for the first text of an answer?", ("120 seconds",)),
    ("What happens when settings.json is broken?", ("last good values",)),
]


def main() -> None:
    """Print a table of the questions with their answers."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app({"DATA_DIR": folder, "SETTINGS_FILE": f"{folder}/none.json"})
        services: Services = app.extensions["assistant"]
        services.start()
        while any(document.state not in ("ready", "failed") for document in services.documents.page(50)):
            time.sleep(0.1)
        print("Each question in a conversation of its own:\n")
        ask_all(services, in_one_conversation=False)
        print("\nAll of them in one conversation, with a window of 5 turns:\n")
        ask_all(services, in_one_conversation=True)
        services.close()


def ask_all(services: Services, in_one_conversation: bool) -> None:
    """Ask the questions and print each answer, and how many hold the right fact."""
    right, conversation_id = 0, None
    print("| question | answer | right fact |\n|---|---|---|")
    for question, facts in QUESTIONS:
        turn = services.assistant.wait(services.assistant.ask(Question(question, conversation_id)).id)
        conversation_id = turn.conversation_id if in_one_conversation else None
        found = any(fact.lower() in turn.answer.lower() for fact in facts)
        right += found
        print(f"| {question} | {' '.join(turn.answer.split())} | {'yes' if found else 'no'} |", flush=True)
    print(f"\n{right} of {len(QUESTIONS)} answers hold the right fact.")
