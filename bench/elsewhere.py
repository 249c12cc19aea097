"""What other conversations and notes contribute to a question, and how much of it is irrelevant.

Needs the shared data, except for the facts of memory_facts.json, written for this: what a person says in passing, a
note of it, and a later question in other words. No model is asked.
"""

import json
import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from bench.recall import holds
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.measures import ndcg_at_10
from bench.retrieval.sets import DATA, Collection, canard, doc2dial, judged, lines, pool, xquad
from bench.stage import application, open_database, wait_until_ready
from rag_assistant.answering.recall import MAX_SENT, MIN_ABOUT, MIN_PAST
from rag_assistant.conversations.prompts import past_sources
from rag_assistant.records import Question
from rag_assistant.retrieval.terms import turn_query, turn_terms
from rag_assistant.retrieval.tokenize import content_stems
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from tests.testkit.stub_model import StubModel

FACTS = Path(__file__).with_name("memory_facts.json")
FILLER = 600  # Turns about something else, between those that are asked for.
TURNS_OF_CONVERSATION = 8
OTHERS = 300
QUESTIONS = 120  # From doc2dial, so that its long documents are ingested within minutes.
LEVELS = ("off", "mine")


class Asked(Struct):
    """A question, the texts of the turns that answer it, and, if known, the content of the answer."""

    text: str
    said: frozenset[str]
    gold: dict[str, list[str]] | None = None


class Memories(Struct):
    """Conversations of one person, and questions about them."""

    name: str
    conversations: list[list[str]]
    asked: list[Asked]


def main() -> None:
    """Print the tables; for each set the test half, and notes with all facts."""
    if not DATA.exists():
        print("Other conversations are not measured: the shared data is not on this machine.")
        return
    strangers = {"doc2dial": [one.text for one in doc2dial().questions]}
    strangers["xquad en"] = [one.text for one in xquad("en").questions]
    print(
        f"| conversations | turns | questions | first | in {MIN_PAST}, beside documents | in {MAX_SENT}, alone | "
        "turns sent for other questions |\n|" + "---|" * 7
    )
    for memories in (bfcl(), facts(), *map(paragraphs, ("en", "de", "zh"))):
        other = strangers["doc2dial" if memories.name.startswith("xquad") else "xquad en"]
        print(row(memories, other), flush=True)
    print(f"\n| documents | questions | nDCG@10 with {LEVELS[0]} | {LEVELS[1]} | turns sent | tokens |\n|" + "---|" * 6)
    dialogues = doc2dial()
    some = replace(dialogues, questions=random.Random(8).sample(dialogues.questions, QUESTIONS))
    for collection in (judged("cranfield"), pool(some, 0)):
        print(harm(collection), flush=True)
    print("\n| question | notes right | other notes sent |\n|---|---|---|")
    for line in notes(random.Random(6).sample(strangers["xquad en"], OTHERS)):
        print(line, flush=True)


def harm(collection: Collection) -> str:
    """Return what searching other conversations does to questions about documents, through the whole product.

    Besides the documents there are the conversations of bfcl_memory and canard; the requests themselves are counted.
    """
    stub = StubModel()
    with tempfile.TemporaryDirectory() as folder, application(Path(folder), stub) as (app, services):
        said = [[one.text for one in some] for _, some in groupby(canard().questions, lambda one: one.conversation)]
        told = [tell(services.database, some) for some in (bfcl().conversations, said)]
        names = dict(enumerate(collection.documents))
        for number, (title, text) in enumerate(collection.documents.values()):
            services.library.accept(BytesIO(f"{title}\n\n{text}".encode()), f"{number}.txt")
        wait_until_ready(services)
        client, figures = app.test_client(), dict[str, list[tuple[float, int, int]]]()
        for level in LEVELS:
            for asked in collection.questions:
                body = {"question": asked.text, "search_conversations": level}
                answer: Any = client.post("/api/query", json=body).json
                own = [int(one["document"].removesuffix(".txt")) for one in answer["sources"] if one["turn"] is None]
                gain = ndcg_at_10([names[one] for one in dict.fromkeys(own)], asked.relevant)
                past = len(answer["sources"]) - len(own)
                figures.setdefault(level, []).append((gain, past, answer["history"]["tokens"]["total"]))
                services.eraser.erase_conversation(answer["conversation_id"])
    stub.close()
    off, mine = ([statistics.fmean(some) for some in zip(*figures[level], strict=True)] for level in LEVELS)
    beside = f"{collection.name}, {len(collection.documents)}, beside {sum(told):,} turns"
    gains = f"{off[0]:.4f} | {mine[0]:.4f}"
    return f"| {beside} | {len(collection.questions)} | {gains} | {mine[1]:.2f} | {off[2]:.0f} to {mine[2]:.0f} |"


def bfcl() -> Memories:
    """Return what bfcl_memory's five people say, a conversation per session."""
    said = [
        [message["content"] for spoken in session["question"] for message in spoken]
        for session in lines("bfcl_memory/prereq_conversations.jsonl")
    ]
    asked = [
        Asked(one["question"][0][0]["content"], frozenset(), one)
        for one in lines("bfcl_memory/questions.jsonl")
        if any(holds(text, one) for conversation in said for text in conversation)
    ]
    return Memories("bfcl_memory, sessions", said, asked)


def facts() -> Memories:
    """Return facts mentioned in passing among questions of doc2dial, each in its own conversation."""
    chance = random.Random(4)
    filler = [one.text for one in chance.sample(doc2dial().questions, FILLER)]
    told = json.loads(FACTS.read_text())
    said = [[filler.pop() for _ in range(TURNS_OF_CONVERSATION)] for _ in told]
    for conversation, (text, _, _) in zip(said, told, strict=True):
        conversation.insert(chance.randrange(TURNS_OF_CONVERSATION), text)
    return Memories("facts in passing", said, [Asked(question, frozenset({text})) for text, _, question in told])


def paragraphs(language: str) -> Memories:
    """Return paragraphs of XQuAD as turns, a conversation per article, and a question about each."""
    collection = xquad(language)
    articles: dict[str, list[str]] = {}
    for title, text in collection.documents.values():
        articles.setdefault(title, []).append(text)
    asked = {
        next(iter(one.relevant)): Asked(one.text, frozenset({collection.documents[next(iter(one.relevant))][1]}))
        for one in collection.questions
    }
    return Memories(f"xquad {language}", list(articles.values()), list(asked.values()))


def notes(strangers: Sequence[str]) -> Iterator[str]:
    """Yield how often the right note, and how many others, are sent with the questions about
    the facts and with others.
    """
    told = json.loads(FACTS.read_text())
    embedder = CachedMiniLM()
    texts, questions = [note for _, note, _ in told], [question for _, _, question in told]
    of_notes, of_questions, of_others = (np.array(embedder.embed(list(some))) for some in (texts, questions, strangers))

    def near(vectors: Any, asked: Sequence[str]) -> Any:
        words = [content_stems(one) for one in asked]
        shares = [[len(own & content_stems(text)) / max(1, len(own)) for text in texts] for own in words]
        return np.maximum(vectors @ of_notes.T, shares) >= MIN_ABOUT

    about, other = near(of_questions, questions), near(of_others, strangers)
    for half, name in ((slice(0, None, 2), "chosen on"), (slice(1, None, 2), "the other half")):
        right = about.diagonal()[half]
        more = (about[half].sum() - right.sum()) / len(right)
        yield f"| about one of {len(texts)} notes, {name} | {right.mean():.2f} | {more:.2f} |"
    yield f"| about something else (xquad en, {len(strangers)}) | | {other.sum() / len(strangers):.3f} |"


def row(memories: Memories, strangers: Sequence[str]) -> str:
    """Return the row of some conversations."""
    chance = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        turns = tell(database, memories.conversations)
        here = ConversationManager(database).create("here")
        ranks = [rank(database, here.id, one) for one in memories.asked]
        sent = [len(found(database, here.id, text)) for text in chance.sample(list(strangers), OTHERS)]
        database.close()
    odd = ranks[1::2]
    first, beside, alone = (statistics.fmean(one <= most for one in odd) for most in (1, MIN_PAST, MAX_SENT))
    several = statistics.fmean(min(one, MIN_PAST) for one in sent)
    return f"| {memories.name} | {turns:,} | {len(odd)} | {first:.2f} | {beside:.2f} | {alone:.2f} | {several:.2f} |"


def found(database: Database, here: int, text: str) -> list[str]:
    """Return what is sent of other conversations with a question."""
    conversation = ConversationManager(database).get(here)
    words = turn_query(text)
    sources = past_sources(HistoryStore(database).elsewhere(conversation, words, MAX_SENT, in_project=False), words, 1)
    return [source.text for source in sources]


def rank(database: Database, here: int, asked: Asked) -> float:
    """Return the rank of the answer among the passages sent, from 1; infinity if it is missing."""
    for n, text in enumerate(found(database, here, asked.text), 1):
        if asked.gold is not None and holds(text, asked.gold):
            return n
        told = text.removeprefix("User: ").partition("\nAssistant:")[0].strip("… ")
        if asked.gold is None and any(told in said for said in asked.said):
            return n
    return float("inf")


def tell(database: Database, said: Sequence[Sequence[str]]) -> int:
    """Store texts as the turns of conversations, and return their number."""
    store = TurnStore(database, "bench", turn_terms)
    for conversation in said:
        conversation_id: int | None = None
        for text in conversation:
            turn, _ = store.accept(Question(text, conversation_id), "bench")
            store.finish(turn, "completed", "I see.")
            conversation_id = turn.conversation_id
    return sum(map(len, said))


if __name__ == "__main__":
    main()
