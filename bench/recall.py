"""What a window forgets, what recall brings back, and how reliably: alarms, false alarms, and their cost.

Needs the shared data. No model is asked: counted are answers that the model sees, and questions correctly or wrongly
taken to be about a turn.
"""

import json
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import select

from bench.retrieval.sets import DATA, doc2dial, lines, xquad
from bench.stage import add_conversation, open_database
from rag_assistant.answering.request import MIN_ALARM_CERTAINTY as MIN_ALARM
from rag_assistant.conversations.prompts import MAX_RECALLED_CHARS, PROMPTS, excerpt, question_message
from rag_assistant.conversations.window import load_window, rules_for
from rag_assistant.history import fit_history
from rag_assistant.records import Question
from rag_assistant.retrieval.follow_up import SearchQuery, beside_which, parts_of
from rag_assistant.retrieval.postprocess import in_turn
from rag_assistant.retrieval.terms import turn_query, turn_terms
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.conversations import history
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.history import MIN_CERTAINTY, HistoryStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.tables import turns

FACTS = Path(__file__).with_name("memory_facts.json")
RECALLED = (0, 1, 2, 3, 5, 8, 10)
WINDOW = 10
TOLD = 20
CONVERSATIONS = 12
UNRELATED = 60


@dataclass
class Asked:
    """The certainty of the best turn out of view: for questions about such a turn, and for others."""

    about: list[float]
    unrelated: list[float]

    def row(self, name: str) -> str:
        """Return the set's row of the table."""
        missed = share(one < MIN_CERTAINTY for one in self.about)
        recalled, alarmed = (share(one >= least for one in self.unrelated) for least in (MIN_CERTAINTY, MIN_ALARM))
        counts = f"{len(self.about)} | {len(self.unrelated)}"
        return f"| {name} | {counts} | {self.auroc():.3f} | {missed:.0%} | {recalled:.1%} | {alarmed:.1%} |"

    def auroc(self) -> float:
        """Return how often a question about a turn is more certain than one about something else."""
        won = sum((a > b) + (a == b) / 2 for a in self.about for b in self.unrelated)
        return won / (len(self.about) * len(self.unrelated))


def main() -> None:
    """Print what is recalled, how well questions about left-out turns are recognised, and at what cost."""
    if not DATA.exists():
        print("Recall is not measured: the shared data is not on this machine.")
        return
    recalled()
    print(
        "\n| questions | about a turn out of view | others | AUROC | missed | recalled for others | false alarms |\n"
        "|---|---|---|---|---|---|---|"
    )
    history.MIN_CERTAINTY = 0.0  # Each question's best turn counts, however certain it is.
    told = memories()
    print(told[0].row("bfcl_memory; others: other people's questions"))
    print(told[1].row("bfcl_memory; others: xquad en"), flush=True)
    print(dialogues().row("doc2dial, another person's words; others: xquad en"), flush=True)
    for language in ("en", "de", "zh"):
        print(notes(language).row(f"xquad {language} as notes; others: other articles"), flush=True)
    history.MIN_CERTAINTY = MIN_CERTAINTY
    print("\n| two questions in one | both turns among the best two | and four |\n|---|---|---|")
    for language in ("en", "de", "zh"):
        print(pairs(language), flush=True)
    print("\n| the turn before or after | recalled before | now |\n|---|---|---|")
    print(beside(), flush=True)
    print("\n| long turns | questions | beginning of the turn | quoted part |\n|---|---|---|---|")
    for language in ("en", "de", "zh"):
        print(quoted(language), flush=True)
    print("\n| turns of the conversation | CPU ms |\n|---|---|")
    for size in (10, 1_000, 2_000, 10_000, 100_000):
        print(f"| {size:,} | {cost(size):.2f} |", flush=True)


# --- what is recalled


def recalled() -> None:
    """Print the share of bfcl_memory's questions whose answer the model sees, by number of recalled turns."""
    seen: dict[int, int] = defaultdict(int)
    characters: dict[int, int] = defaultdict(int)
    questions = lines("bfcl_memory/questions.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        for scenario, said in people().items():
            conversation_id = tell(database, said)
            for question in questions:
                if question["scenario"] == scenario:
                    text = question["question"][0][0]["content"]
                    for limit in RECALLED:
                        before_question = prompt(database, conversation_id, text, limit).removesuffix(text)
                        characters[limit] += len(before_question)
                        seen[limit] += holds(before_question, question)
        database.close()
    print(f"{len(questions)} questions, window of {WINDOW} turns\n")
    print("| recalled turns | answer is in the prompt | characters in the prompt |\n|---|---|---|")
    for limit in RECALLED:
        print(f"| {limit} | {seen[limit] / len(questions):.0%} | {characters[limit] // len(questions):,} |")


def prompt(database: Database, conversation_id: int, question: str, limit: int) -> str:
    """Return all text that the model would see with a question, as in an answer."""
    conversation = ConversationManager(database).get(conversation_id)
    settings = Settings(max_history_turns=WINDOW)
    window = load_window(
        HistoryStore(database), conversation, conversation.turns + 1, rules_for(conversation, settings), settings
    )
    before = [{"role": "system", "content": PROMPTS["with_passages"]}, *window.messages]
    kept = fit_history([*before, {"role": "user", "content": question}], window.policy).receipt.kept_turns
    found = related(database, conversation_id, question, kept, limit)
    fitted = fit_history([*before, question_message(question, (), found)], window.policy)
    return "\n".join(message["content"] for message in fitted.messages)


# --- certainty


def memories() -> tuple[Asked, Asked]:
    """Return bfcl_memory's questions about turns outside a window of 10, and two kinds of others."""
    questions = lines("bfcl_memory/questions.jsonl")
    chance, english = random.Random(1), xquad("en").questions
    about: list[float] = []
    strangers: list[float] = []
    alone: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        for scenario, said in people().items():
            conversation_id = tell(database, said)
            kept = range(len(said) - WINDOW + 1, len(said) + 1)
            for question in questions:
                text = question["question"][0][0]["content"]
                where = [number for number, one in enumerate(said, 1) if holds(one, question)]
                if question["scenario"] != scenario:
                    strangers.append(certainty(database, conversation_id, text, kept))
                elif where and max(where) <= len(said) - WINDOW:
                    about.append(certainty(database, conversation_id, text, kept))
            for one in chance.sample(english, UNRELATED):
                alone.append(certainty(database, conversation_id, one.text, kept))
        database.close()
    return Asked(about, strangers), Asked(about, alone)


def dialogues() -> Asked:
    """Return questions whose passage answered another dialogue of the same conversation, and others."""
    chance, english = random.Random(2), xquad("en").questions
    dialogs: dict[str, list[Any]] = defaultdict(list)
    for one in doc2dial().questions:
        dialogs[one.id.rsplit("_", 1)[0]].append(one)
    by_document: dict[str, list[str]] = defaultdict(list)
    for name, asked in dialogs.items():
        by_document[next(iter(asked[0].relevant))].append(name)
    about: list[float] = []
    alone: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        for _ in range(CONVERSATIONS):
            said: list[str] = []
            answered: list[tuple[str, tuple[tuple[int, int], ...]]] = []
            asked_again: list[Any] = []
            for document in chance.sample(sorted(by_document), 25):
                names = chance.sample(by_document[document], len(by_document[document]))
                first = dialogs[names[0]]
                for this, following in pairwise(first):
                    said.append(f"{this.text}\n{following.exchanges[-1][1]}")
                    answered.append((document, this.spans))
                asked_again += [(document, dialogs[name][0]) for name in names[1:]]
            conversation_id = tell(database, said)
            kept = range(len(said) - 4, len(said) + 1)
            for document, one in asked_again:
                if any(document == other and overlap(one.spans, spans) for other, spans in answered[:-5]):
                    about.append(certainty(database, conversation_id, one.text, kept))
            for one in chance.sample(english, 20):
                alone.append(certainty(database, conversation_id, one.text, kept))
        database.close()
    return Asked(about, alone)


def notes(language: str) -> Asked:
    """Return questions about paragraphs told in a conversation, and questions about other articles."""
    chance, collection = random.Random(3), xquad(language)
    articles: dict[str, list[str]] = defaultdict(list)
    for name, (title, _) in collection.documents.items():
        articles[title].append(name)
    asked = {next(iter(one.relevant)): one.text for one in reversed(collection.questions)}
    about: list[float] = []
    others: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        for _ in range(CONVERSATIONS):
            titles = chance.sample(sorted(articles), len(articles))
            told = [name for title in titles for name in articles[title]][:TOLD]
            chance.shuffle(told)
            conversation_id = tell(database, [collection.documents[name][1] for name in told])
            about += [certainty(database, conversation_id, asked[name], ()) for name in told if name in asked]
            begun = {collection.documents[name][0] for name in told}
            rest = [name for title in titles if title not in begun for name in articles[title] if name in asked]
            others += [certainty(database, conversation_id, asked[name], ()) for name in chance.sample(rest, 40)]
        database.close()
    return Asked(about, others)


def pairs(language: str) -> str:
    """Return the row with the share of recalled turns for questions about two of 40 paragraphs told as turns."""
    chance, collection = random.Random(3), xquad(language)
    articles: dict[str, list[str]] = defaultdict(list)
    for name, (title, _) in collection.documents.items():
        articles[title].append(name)
    asked = {next(iter(one.relevant)): one.text.strip() for one in reversed(collection.questions)}
    found: dict[int, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        for _ in range(CONVERSATIONS):
            titles = chance.sample(sorted(articles), len(articles))
            told = [name for title in titles for name in articles[title]][: 2 * TOLD]
            chance.shuffle(told)
            conversation_id = tell(database, [collection.documents[name][1] for name in told])
            about = [name for name in told if name in asked]
            chance.shuffle(about)
            for names in zip(about[::2], about[1::2], strict=False):
                parts = parts_of(SearchQuery(" ".join(asked[name].rstrip("?\uff1f") + "?" for name in names)))
                best = in_turn([related(database, conversation_id, part.text, (), 25) for part in parts])
                numbers = list(dict.fromkeys(turn.number for turn in best))
                for limit in (2, 4):
                    found[limit] += [float(told.index(name) + 1 in numbers[:limit]) for name in names]
        database.close()
    return f"| xquad {language} as notes | {statistics.fmean(found[2]):.3f} | {statistics.fmean(found[4]):.3f} |"


def beside() -> str:
    """Return the row with the share of turns before or after a fact, asked about by it, among five recalled ones."""
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    found: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        conversation_id = tell(database, [text for text, _, _ in facts])
        for number, (_, _, question) in enumerate(facts[1:-1], 2):
            for where, step in (("before", -1), ("after", 1)):
                asked = f"What did I say right {where} I told you {question[0].lower()}{question[1:]}"
                for is_told, numbers in found.items():
                    text, which = beside_which(asked) if is_told else (asked, 0)
                    turns_found = related(database, conversation_id, text, (), 5, which)[:5]
                    numbers.append(float(number + step in [turn.number for turn in turns_found]))
        database.close()
    return f"| facts in passing | {statistics.fmean(found[False]):.3f} | {statistics.fmean(found[True]):.3f} |"


# --- what is quoted of it


def quoted(language: str) -> str:
    """Return the row with how often the quotes from a whole article told in one turn contain the answer."""
    collection = xquad(language)
    articles: dict[str, list[str]] = defaultdict(list)
    for title, text in collection.documents.values():
        articles[title].append(text)
    asked = [
        (one, "\n\n".join(articles[collection.documents[next(iter(one.relevant))][0]])) for one in collection.questions
    ]
    parts = [excerpt(told, turn_query(one.text), MAX_RECALLED_CHARS) for one, told in asked]
    begun = share(any(answer in told[:MAX_RECALLED_CHARS] for answer in one.answers) for one, told in asked)
    found = share(any(answer in part for answer in one.answers) for (one, _), part in zip(asked, parts, strict=True))
    length = round(statistics.fmean(len(told) for _, told in asked))
    return f"| xquad {language}, articles of {length:,} characters | {len(asked):,} | {begun:.2f} | {found:.2f} |"


# --- cost


def cost(size: int) -> float:
    """Return the CPU time, in ms, of finding related turns in a conversation of ``size`` turns of real text."""
    chance = random.Random(4)
    texts = [row["text"][:600] for row in lines("mtrag/corpus_clapnq.jsonl")]
    questions = [one.text for one in xquad("en").questions[:200]]
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        conversation_id = add_conversation(database, size)
        with database.write() as connection:
            ids = connection.execute(select(turns.c.id)).scalars().all()
            TURN_WORDS.insert(connection, [(one, turn_terms(chance.choice(texts))) for one in ids])
        kept = range(size - 4, size + 1)
        for question in questions[:20]:
            related(database, conversation_id, question, kept, 5)
        began = time.process_time()
        for question in questions[20:]:
            related(database, conversation_id, question, kept, 5)
        used = time.process_time() - began
        database.close()
    return used / (len(questions) - 20) * 1000


# --- a stored conversation


def people() -> dict[str, list[str]]:
    """Return what each of bfcl_memory's five people says over their sessions."""
    said: dict[str, list[str]] = defaultdict(list)
    for session in lines("bfcl_memory/prereq_conversations.jsonl"):
        said[session["scenario"]] += [message["content"] for spoken in session["question"] for message in spoken]
    return said


def tell(database: Database, said: Sequence[str]) -> int:
    """Store texts as the turns of one conversation, and return its id."""
    store = TurnStore(database, "bench", turn_terms)
    conversation_id: int | None = None
    for text in said:
        turn, _ = store.accept(Question(text, conversation_id), "bench")
        store.finish(turn, "completed", "I see.")
        conversation_id = turn.conversation_id
    assert conversation_id is not None
    return conversation_id


def related(
    database: Database, conversation_id: int, question: str, kept: Sequence[int], limit: int, which: int = 0
) -> list[Any]:
    """Return the turns out of view that a question seems to be about."""
    conversation = ConversationManager(database).get(conversation_id)
    words = turn_query(question)
    return HistoryStore(database).related(conversation, words, conversation.turns + 1, kept, limit, which)


def certainty(database: Database, conversation_id: int, question: str, kept: Sequence[int]) -> float:
    """Return the certainty of the best turn out of view."""
    found = related(database, conversation_id, question, kept, 5)
    return max((turn.certainty for turn in found), default=0.0)


def share(counted: Iterable[bool]) -> float:
    """Return the share of true values."""
    return statistics.fmean(counted)


def holds(text: str, question: dict[str, Any]) -> bool:
    """Return whether a text holds the published answer."""
    return any(gold.lower() in text.lower() for gold in question["ground_truth"])


def overlap(these: Sequence[tuple[int, int]], those: Sequence[tuple[int, int]]) -> bool:
    """Return whether any of two lists of spans meet."""
    return any(a < d and c < b for a, b in these for c, d in those)


if __name__ == "__main__":
    main()
