"""Example questions: made where a document answers them for sure, and nowhere else."""

from itertools import islice

import pytest

from rag_assistant.extraction.extract import read_document
from rag_assistant.extraction.formats.kinds import media_type_of
from rag_assistant.records import EVERYTHING
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.chunking import chunk_document
from rag_assistant.retrieval.example_questions import example_questions
from rag_assistant.storage.database import Database
from tests.testkit.shared_data import shared, shared_jsonl
from tests.testkit.shelf import Shelf

BELOW = "You find the form in the office, and it takes a few days until the answer is there."


def made(text: str) -> list[str]:
    return example_questions(text, 4)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (f"## How many days off do I get?\n\n{BELOW}", "How many days off do I get?"),
        (f"## 2.1 What does a berth cost? ##\n\n{BELOW}", "What does a berth cost?"),
        (f"## How to get a badge?\n\n{BELOW}", "How do I get a badge?"),
        (f"**Can I bring a dog?**\n\n{BELOW}", "Can I bring a dog?"),
        (f"## How to Order Office Supplies\n\n{BELOW} All office supplies are in one list.",
         "How do I order office supplies?"),
        (f"## Book a meeting room\n\n{BELOW}", "How do I book a meeting room?"),
        (f"## Change your password\n\n{BELOW}", "How do I change my password?"),
        ("This lease is made in the town. The monthly rent is 1,240 euros, payable on the third day of the month.",
         "What is the monthly rent?"),
        ("We thank you for the trust. Your policy number is HX-99812, and the contract is in the post by now.",
         "What is my policy number?"),
        (f"The warranty on labour is six months. {BELOW}", "What is the warranty on labour?"),
        ("Willkommen im Haus am Hafen. Die monatliche Miete beträgt 890 Euro, fällig am dritten Werktag.",
         "Wie hoch ist die monatliche Miete?"),
        ("Willkommen im Haus am Hafen. Die Kündigungsfrist beträgt drei Monate zum Ende eines Quartals.",
         "Wie lang ist die Kündigungsfrist?"),
        ("## Wie viele Tage Urlaub habe ich?\n\nJeder Mitarbeiter hat dreißig Tage, die er im Jahr nehmen muss.",
         "Wie viele Tage Urlaub habe ich?"),
    ],
)  # fmt: skip
def test_headings_and_first_sentences_become_questions(text: str, question: str) -> None:
    assert made(text) == [question]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "## How many days?\n\n## Next",
        f"Short line?\n\n{BELOW}",
        f"How can we help you with that?\n\n{BELOW}",
        f"## Introduction\n\n{BELOW}",
        "Die Gans ist ein Vogel, der in der Nähe von Wasser lebt und laut ist, wenn er Angst hat.",
        "```\n## What does this code print to the screen?\n\n" + BELOW + "\n```",
        "x" * 100_000,
    ],
)
def test_what_would_read_wrong_or_has_no_answer_is_left_out(text: str) -> None:
    assert made(text) == []


def test_each_question_is_there_once_and_no_more_than_asked_for() -> None:
    text = "".join(f"## What is in room {number % 5}?\n\n{BELOW}\n\n" for number in range(9))
    assert made(text) == [f"What is in room {number}?" for number in range(4)]


def test_the_questions_of_real_documents_find_the_passages_that_they_come_from(database: Database) -> None:
    shelf, texts = Shelf(database), []
    for name in ("docling/wiki_duck.html", "markitdown/test_wikipedia.html", "docling/duck.md"):
        path = shared(f"documents/{name}")
        texts.append(read_document(path, media_type_of(path.read_bytes()[:4096], path.name)).text)
    faq = (row["text"] for row in shared_jsonl("mtrag/corpus_govt.jsonl"))
    texts += islice((text for text in faq if made(text)), 15)
    documents = {
        shelf.shelve(
            *dict.fromkeys(one.text for one in chunk_document(ExtractedText(text, "", markdown=True), 900))
        ): text
        for text in texts
    }
    questions = [(question, document.id) for document, text in documents.items() for question in made(text)]
    assert len(questions) > 20
    missed = [question for question, source in questions if not found(shelf, question, source)]
    assert missed == []


def found(shelf: Shelf, question: str, document_id: int) -> bool:
    """Tell whether a search finds the document that a question was made from, or one with the same question."""
    passages = shelf.retriever.search(question, 5, EVERYTHING)
    return any(one.document_id == document_id or question in " ".join(one.text.split()) for one in passages)
