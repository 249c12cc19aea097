"""Are false citations told from true ones? Answers of mtrag and doc2dial, unchanged and with one thing changed.

A human answer cites the gold passages; each of its sentences is one citation. Then another passage is cited, or a
number, a name or a negation of the sentence is changed. Conversations are split by hash: one half (0) was used for
tuning, the other (1) for testing.
"""

import random
import re
import statistics
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.retrieval.sets import DATA, Collection, doc2dial, lines, mtrag, xquad
from rag_assistant.retrieval.claims import check_citations
from rag_assistant.retrieval.dates import dates_in, days_in
from rag_assistant.retrieval.sentences import split_text
from rag_assistant.retrieval.tokenize import content_words

AROUND = 400
# The passage beside the gold span is as long as a chunk; shorter ones don't count.
BESIDE, MIN_BESIDE = 900, 300
STRANGERS = ("Bristow", "Kowalski", "Marrakesh", "Denver", "Osaka", "Lindqvist")
DENIED = (
    (" is ", " is not "), (" are ", " are not "), (" was ", " was not "), (" can ", " cannot "),
    (" will ", " will not "), (" must ", " must not "), (" not ", " "),
)  # fmt: skip
MIN_WORDS = 4


@dataclass(frozen=True)
class Cited:
    """A sentence with the passage that supports it, and the question and conversation before it.

    ``neighbour`` is the adjacent passage in its document, if there is one.
    """

    conversation: str
    sentence: str
    passage: str
    asked: str
    neighbour: str = ""

    @property
    def half(self) -> int:
        """The half that its conversation belongs to."""
        return zlib.crc32(self.conversation.encode()) % 2


def main() -> None:
    """Print how many true and false citations are doubted, by kind."""
    if not DATA.exists():
        print("Claims are not measured: the shared data is not on this machine.")
        return
    kinds = ("number", "name", "negation")
    print(
        "| set | half | sentences | true but doubted | wrong passage | number | name | negation | mean detected "
        "| neighbouring passage | and the right one sent | true, neighbour and three others sent, doubted |"
    )
    print("|---" * 12 + "|")
    for name, every in (("mtrag", list(of_mtrag())), ("doc2dial", list(of_doc2dial()))):
        for half in (0, 1):
            some = [one for one in every if one.half == half]
            chance = random.Random(1)
            others = [chance.choice(some).passage for _ in some]
            moved = share(doubted(one, passage=other) for one, other in zip(some, others, strict=True))
            caught = [moved, *(share(planted(some, kind, chance)) for kind in kinds)]
            cells = " | ".join(f"{value:.2f}" for value in (*caught, statistics.fmean(caught)))
            with_one = [one for one in some if one.neighbour]
            beside = share(doubted(one, passage=one.neighbour) for one in with_one)
            sent = share(doubted(one, passage=one.neighbour, others=[one.passage]) for one in with_one)
            strangers = [[one.neighbour, *(other.passage for other in chance.sample(some, 3))] for one in with_one]
            true = share(doubted(one, others=others) for one, others in zip(with_one, strangers, strict=True))
            print(
                f"| {name} | {half} | {len(some)} | {share(map(doubted, some)):.3f} | {cells} | {beside:.2f} "
                f"| {sent:.2f} | {true:.3f} |",
                flush=True,
            )
    for language in ("en", "de", "zh"):
        told = list(of_xquad(language))
        why = Counter(reason(one) for one in told)
        print(
            f"| xquad {language}, its own sentences | | {len(told)} | {1 - why[None] / len(told):.3f} | | | | | | | | |"
        )
    for name, every in (("mtrag", list(of_mtrag())), ("doc2dial", list(of_doc2dial()))):
        print(f"\n{name}, half 1: {offers([one for one in every if one.half == 1])}")
    print("\n| dates of | in | texts | with a date, told though there | changed, told |")
    print("|---" * 5 + "|")
    sets: dict[str, Iterable[tuple[str, str]]] = {"mtrag": answers_of_mtrag(), "doc2dial": answers_of_doc2dial()}
    for language, source in (("en", "de"), ("en", "zh"), ("en", "ar"), ("de", "en"), ("zh", "en"), ("ar", "en")):
        texts, sources = xquad(language).documents, xquad(source).documents
        same = texts.keys() & sources.keys()
        sets[f"xquad {language} | {source}"] = [(texts[name][1], sources[name][1]) for name in same]
    for name, answers in sets.items():
        row = name if " " in name else f"{name} | all that was sent"
        print(f"| {row} | {dates_told(sorted(answers))} |", flush=True)
    print(f"\n{milliseconds(list(of_mtrag())):.2f} ms of CPU for an answer of five sentences and six passages")


def answers_of_mtrag() -> Iterable[tuple[str, str]]:
    """Yield mtrag's reference answers, each with all gold passages of its question and all that was said before."""
    collection = mtrag()
    asked = {one.id: one for one in collection.questions}
    for row in lines("mtrag/queries.jsonl"):
        one = asked.get(row["_id"])
        gold = [collection.documents[name] for name in one.relevant if name in collection.documents] if one else []
        if one and gold and row.get("reference_answer"):
            said = [one.text, one.rewrite, *(text for exchange in one.exchanges for text in exchange)]
            yield row["reference_answer"], "\n".join([*said, *(text for parts in gold for text in parts)])


def answers_of_doc2dial() -> Iterable[tuple[str, str]]:
    """Yield what doc2dial's agents say, each with its document and all that was said before."""
    collection = doc2dial()
    for this, following in zip(collection.questions, collection.questions[1:], strict=False):
        if following.id.rsplit("_", 1)[0] == this.id.rsplit("_", 1)[0]:
            said = [this.text, *(text for exchange in this.exchanges for text in exchange)]
            yield following.exchanges[-1][1], "\n".join([*collection.documents[next(iter(this.relevant))], *said])


def dates_told(answers: Sequence[tuple[str, str]]) -> str:
    """Return how many texts have dates that their source seems not to have, and how many changed dates are told."""
    chance, dated, told, changed, detected = random.Random(1), 0, 0, 0, 0
    for text, source in answers:
        known, dates = days_in(source), dates_in(text)
        there = [not known.isdisjoint(days) for _, days in dates]
        dated, told = dated + bool(dates), told + (False in there)
        for days in (days for (_, days), is_there in zip(dates, there, strict=True) if is_there):
            month, day = min(days, key=str)
            changed += 1
            detected += (
                (month, (day + chance.randint(1, 9) - 1) % 28 + 1) if day else (month % 12 + 1, None)
            ) not in known
    return f"{len(answers)} | {told} of {dated} | {detected} of {changed}"


def reason(
    one: Cited, sentence: str | None = None, passage: str | None = None, others: Sequence[str] = ()
) -> str | None:
    """Return the reason why a citation is doubted; ``others`` are passages that were sent and aren't cited."""
    passages = dict(enumerate((one.passage if passage is None else passage, *others), 1))
    text = one.sentence if sentence is None else sentence
    doubts = check_citations(f"{text.rstrip('.!')} [1].", one.asked, passages)[1].doubts
    return doubts[0].problem if doubts else None


def doubted(one: Cited, sentence: str | None = None, passage: str | None = None, others: Sequence[str] = ()) -> bool:
    return reason(one, sentence, passage, others) is not None


def planted(some: Sequence[Cited], kind: str, chance: random.Random) -> Iterable[bool]:
    """Yield whether a change of an undoubted sentence is detected."""
    for one in some:
        changed = CHANGES[kind](one.sentence, chance)
        if changed is not None and not doubted(one):
            yield doubted(one, sentence=changed)


def another_number(sentence: str, chance: random.Random) -> str | None:
    """Return a sentence with another number."""
    numbers = re.findall(r"\d+", sentence)
    if not numbers:
        return None
    number = chance.choice(numbers)
    return re.sub(rf"\b{number}\b", str(int(number) + chance.randint(1, 9)), sentence, count=1)


def another_name(sentence: str, chance: random.Random) -> str | None:
    """Return a sentence with another name."""
    names = re.findall(r"(?<=[a-z] )[A-Z][a-z]{3,}", sentence)
    return sentence.replace(chance.choice(names), chance.choice(STRANGERS), 1) if names else None


def denied(sentence: str, _chance: random.Random) -> str | None:
    """Return a sentence that says the opposite."""
    return next((sentence.replace(old, new, 1) for old, new in DENIED if old in sentence), None)


CHANGES: dict[str, Callable[[str, random.Random], str | None]] = {
    "number": another_number,
    "name": another_name,
    "negation": denied,
}


def of_mtrag() -> Iterable[Cited]:
    """Yield the sentences of mtrag's reference answers with all gold passages of their question."""
    collection = mtrag()
    asked = {one.id: one for one in collection.questions}
    for row in lines("mtrag/queries.jsonl"):
        one = asked.get(row["_id"])
        gold_names = [name for name in one.relevant if name in collection.documents] if one else []
        gold = [collection.documents[name] for name in gold_names]
        if one and gold:
            said = " ".join([one.text, one.rewrite, *(text for exchange in one.exchanges[-1:] for text in exchange)])
            passage = "\n\n".join(f"{title}\n\n{text}" for title, text in gold)
            for sentence in telling(row.get("reference_answer") or ""):
                yield Cited(row["_id"].split("<")[0], sentence, passage, said, _beside(collection, gold_names))


def _beside(collection: Collection, gold: Sequence[str]) -> str:
    """Return the passage next to the first gold one, by name, on the same page; mtrag's are split so."""
    names = list(collection.documents)
    at = names.index(gold[0])
    title = collection.documents[gold[0]][0]
    some = (names[place] for place in (at + 1, at - 1, at + 2, at - 2) if 0 <= place < len(names))
    texts = [collection.documents[name] for name in some if name not in gold]
    return next((f"{title}\n\n{text}" for other, text in texts if other == title), "")


def of_doc2dial() -> Iterable[Cited]:
    """Yield the sentences of doc2dial's agents with the text around the gold span."""
    collection = doc2dial()
    for this, following in zip(collection.questions, collection.questions[1:], strict=False):
        dialog = this.id.rsplit("_", 1)[0]
        if following.id.rsplit("_", 1)[0] != dialog:
            continue
        title, text = collection.documents[next(iter(this.relevant))]
        start, end = min(a for a, _ in this.spans), max(b for _, b in this.spans)
        passage = f"{title}\n\n{text[max(0, start - AROUND) : end + AROUND]}"
        after, before = text[end + AROUND :][:BESIDE], text[: max(0, start - AROUND)][-BESIDE:]
        beside = next((f"{title}\n\n{one}" for one in (after, before) if len(one) > MIN_BESIDE), "")
        said = " ".join([this.text, *(part for exchange in this.exchanges[-1:] for part in exchange)])
        for sentence in telling(following.exchanges[-1][1]):
            if not sentence.endswith("?"):
                yield Cited(dialog, sentence, passage, said, beside)


def of_xquad(language: str) -> Iterable[Cited]:
    """Yield the sentences of paragraphs, each with its paragraph."""
    for name, (title, text) in xquad(language).documents.items():
        for sentence in split_text(" ".join(text.split())):
            yield Cited(name, sentence, text, title)


def telling(answer: str) -> list[str]:
    """Return the sentences of an answer with enough content to be compared."""
    return [one for one in split_text(" ".join(answer.split())) if len(content_words(one)) >= MIN_WORDS]


def offers(some: Sequence[Cited]) -> str:
    """Return how many uncited sentences are offered a passage, their own one or one of three others."""
    chance, right, wrong = random.Random(1), 0, 0
    for one in some:
        others = chance.sample([other.passage for other in some if other.conversation != one.conversation], 3)
        checked = check_citations(one.sentence, one.asked, dict(enumerate((one.passage, *others), 1)))
        right += bool(checked[1].offered)
        wrong += any(checked[n].offered for n in (2, 3, 4))
    return f"offered its own passage {right / len(some):.2f}, another {wrong / len(some):.3f}"


def milliseconds(cited: Sequence[Cited]) -> float:
    """Return the CPU time for an answer of five sentences and six passages, in ms."""
    groups = [cited[start : start + 5] for start in range(0, 500, 5)]
    began = time.process_time()
    for group in groups:
        passages = {n: one.passage[:1200] for n, one in enumerate((*group, group[0]), 1)}
        check_citations(" ".join(f"{one.sentence} [{n}]" for n, one in enumerate(group, 1)), group[0].asked, passages)
    return (time.process_time() - began) / len(groups) * 1000


def share(counted: Iterable[bool]) -> float:
    """Return the share of true values."""
    return statistics.fmean(counted)


if __name__ == "__main__":
    main()
