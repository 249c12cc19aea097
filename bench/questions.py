"""24 questions about the guide without a model: is the right fact quoted, and from the right page?"""

import tempfile
import time

from rag_assistant.records import Question
from rag_assistant.services import Services
from rag_assistant.web import create_app

# Each question with alternative facts that must be in the answer, and the beginning of its page's name.
QUESTIONS = [
    ("How many earlier turns does the model see?", ("last 5 turns",), "2-"),
    ("Which kinds of documents can I add?", ("PDF",), "3-"),
    ("How do I connect a model?", ("openai_base_url", "OPENAI_API_KEY"), "4-"),
    ("What happens to older turns of a conversation?", ("never deleted", "stay in the conversation"), "2-"),
    ("How large may a document be?", ("50 MB",), "3-"),
    ("Which port does the server listen on?", ("8000",), "5-"),
    ("What happens if the server is killed while it writes an answer?", ("marked as incomplete",), "1-"),
    ("How do I make a backup?", ("rag-assistant backup FILE",), "5-"),
    ("How long does the assistant wait for the first text of an answer?", ("120 seconds",), "4-"),
    ("What happens when settings.json is broken?", ("last good values",), "5-"),
    ("How do I delete a document?", ("the three dots",), "3-"),
    ("What is a tag?", ("label that you give",), "3-"),
    ("Can I add a scanned PDF?", ("text recognition",), "3-"),
    ("How do I undo a change?", ("/undo",), "6-"),
    ("What does the horizon line show?", ("where the view of the model begins",), "2-"),
    ("How do I stop an answer?", ("Stop button",), "1-"),
    ("Which commands can I type?", ("/history",), "6-"),
    ("How do I export a conversation?", ("Markdown or JSON",), "6-"),
    ("How do I erase a conversation for good?", ("Erase permanently",), "6-"),
    ("Which tools can the model call in agent mode?", ("search the documents",), "7-"),
    ("How do I switch to dark mode?", ("Choose Light or Dark",), "8-"),
    ("Can I change a question that I asked?", ("Edit a question",), "8-"),
    ("Where is my data kept?", ("folder data",), "5-"),
    ("How do I pin a turn?", ("always sees it",), "2-"),
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
    """Ask the questions and print each answer, and how many contain the right fact and cite the right page."""
    right, conversation_id = 0, None
    print("| question | answer | right fact | right page |\n|---|---|---|---|")
    for question, facts, page in QUESTIONS:
        turn = services.assistant.wait(services.assistant.ask(Question(question, conversation_id)).id)
        conversation_id = turn.conversation_id if in_one_conversation else None
        fact = any(fact.lower() in turn.answer.lower() for fact in facts)
        cited = any(source.cited and source.document.startswith(page) for source in turn.sources)
        right += fact and cited
        print(f"| {question} | {' '.join(turn.answer.split())} | {fact} | {cited} |", flush=True)
    print(f"\n{right} of {len(QUESTIONS)} answers hold the right fact and cite the right page.")
