"""What a summary without a model keeps: how many answers are still in a quarter of the text, compared with other
methods.

Needs the shared data, and for its last row the small model of the tests. An answer counts if it is in the lines of the
turn that said it or, for what five people said, anywhere.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from statistics import mean

from bench.prompt_cache import chat, start_server
from bench.recall import people
from bench.retrieval.sets import DATA, lines, xquad
from rag_assistant.conversations.compaction import MAX_SUMMARY_PART_TOKENS
from rag_assistant.conversations.prompts import summary_request, turn_text
from rag_assistant.conversations.summary_lines import SHARE_KEPT, SummaryLine, extract, read_lines, with_turns
from rag_assistant.history import estimate_tokens
from rag_assistant.records import PastTurn
from rag_assistant.retrieval.sentences import split_text

# Of a conversation summarised by a model at once: what fits into a request of 2,000 tokens.
PART_TOKENS = 1200


@dataclass(frozen=True)
class Told:
    """A conversation and the answers in it: the number of the turn, or None for any, and the wordings."""

    turns: Sequence[PastTurn]
    answers: Sequence[tuple[int | None, Sequence[str]]]

    def kept_in(self, record: str) -> list[bool]:
        """Return for each answer whether it is in a record, whose lines name turns."""
        by_turn: dict[int | None, str] = defaultdict(str)
        for line in record.lower().split("\n"):
            by_turn[None] += line + "\n"
            if line.startswith("turn "):
                by_turn[int(line.split()[1].strip(",:"))] += line
        return [any(one.lower() in by_turn[number] for one in wordings) for number, wordings in self.answers]


def main() -> None:
    """Print the share of answers each method keeps, and the amount of text."""
    if not DATA.exists():
        print("Summaries are not measured: the shared data is not on this machine.")
        return
    said = memories()
    sets = {**said, **{f"xquad {language}": notes(language) for language in ("en", "de", "zh")}}
    ways: dict[str, Callable[[Sequence[PastTurn]], str]] = {
        "extract": lambda turns: extract(turns, inf),
        "first sentences of each message": first_sentences,
        "newest turns, whole": newest,
        "random sentences": at_random,
    }
    print(f"| way | {' | '.join(sets)} |\n|---|{'---|' * len(sets)}")
    print(f"| answers | {' | '.join(str(sum(len(one.answers) for one in told)) for told in sets.values())} |")
    for name, way in ways.items():
        print(row(name, sets.values(), way), flush=True)
    server = start_server()  # It stops when nothing refers to it.
    url = str(server.listening_address)
    print(row("SmolLM2-135M", said.values(), lambda turns: written(url, turns)))
    print("\n| sentences about one turn each | right turn named | only the right turn named | turns named |")
    print("|---|---|---|---|")
    for language in ("en", "de", "zh"):
        print(named(language))


def row(name: str, sets: Iterable[Sequence[Told]], way: Callable[[Sequence[PastTurn]], str]) -> str:
    """Return the share of answers that a method keeps in each set, with its share of the text."""
    cells = []
    for conversations in sets:
        kept: list[bool] = []
        before = after = 0
        for told in conversations:
            record = way(told.turns)
            kept += told.kept_in(record)
            before += sum(estimate_tokens(text_of(turn)) for turn in told.turns)
            after += estimate_tokens(record)
        cells.append(f"{sum(kept) / len(kept):.2f} of {after / before:.0%}")
    return f"| {name} | {' | '.join(cells)} |"


def named(language: str) -> str:
    """Return how often a line names its turn: XQuAD's questions, about the paragraphs of an article."""
    collection = xquad(language)
    right, alone, count = [], [], []
    for told in notes(language):
        lines_told = [SummaryLine((turn.number,), text_of(turn)) for turn in told.turns]
        number_of = {text_of(turn): turn.number for turn in told.turns}
        for asked in collection.questions:
            number = number_of.get(" ".join(collection.documents[next(iter(asked.relevant))][1].split()))
            if number is not None:
                found = read_lines(with_turns(asked.text, lines_told))[0].turns
                right.append(number in found)
                alone.append(found == (number,))
                count.append(len(found))
    figures = f"{mean(right):.3f} | {mean(alone):.3f} | {mean(count):.2f}"
    return f"| xquad {language}, {len(right)} questions | {figures} |"


# --- other methods


def first_sentences(turns: Sequence[PastTurn]) -> str:
    """Return as many first sentences as fit, then second ones, and so on."""
    return chosen(turns, lambda position, _turn: position)


def newest(turns: Sequence[PastTurn]) -> str:
    """Return what was said last."""
    return chosen(turns, lambda _position, turn: -turn)


def at_random(turns: Sequence[PastTurn]) -> str:
    """Return random sentences."""
    chance = random.Random(5)
    return chosen(turns, lambda _position, _turn: chance.random())


def chosen(turns: Sequence[PastTurn], order: Callable[[int, int], float]) -> str:
    """Return the first sentences in an order by their position and turn, up to a quarter of the tokens."""
    said = [
        (order(position, turn.number), turn.number, position, sentence, estimate_tokens(sentence))
        for turn in turns
        for position, sentence in enumerate(split_text(text_of(turn)))
    ]
    room = SHARE_KEPT * sum(one[-1] for one in said)
    kept = []
    for one in sorted(said):
        if one[-1] <= room:
            kept.append(one[1:4])
            room -= one[-1]
    return "\n".join(f"Turn {number}: {sentence}" for number, _, sentence in sorted(kept))


def written(url: str, turns: Sequence[PastTurn]) -> str:
    """Return what the model writes, part by part, with the prompts of compaction."""
    parts: list[list[str]] = [[]]
    used = 0
    for text in (turn_text(turn.number, turn.messages) for turn in turns):
        if used + (tokens := estimate_tokens(text)) > PART_TOKENS and parts[-1]:
            parts.append([])
            used = 0
        parts[-1].append(text)
        used += tokens
    return "\n".join(chat(url, summary_request(part, ""), MAX_SUMMARY_PART_TOKENS) for part in parts)


# --- data


def memories() -> dict[str, list[Told]]:
    """Return what bfcl_memory's people said, with published answers that occur in it word for word."""
    told = {}
    for scenario, said in people().items():
        answers = [one["ground_truth"] for one in lines("bfcl_memory/questions.jsonl") if one["scenario"] == scenario]
        conversation = Told(turns_of(said), [(None, one) for one in answers])
        kept = conversation.kept_in("\n".join(said))
        if any(kept):
            held = [one for one, there in zip(conversation.answers, kept, strict=True) if there]
            told[f"bfcl_memory, {scenario}"] = [Told(conversation.turns, held)]
    return told


def notes(language: str) -> list[Told]:
    """Return every other article of XQuAD as a conversation: a paragraph per turn, with the answers in it.

    The constants were tuned on the rest.
    """
    collection = xquad(language)
    articles: dict[str, list[str]] = defaultdict(list)
    for name, (title, _) in collection.documents.items():
        articles[title].append(name)
    return [
        Told(
            turns_of([collection.documents[name][1] for name in names]),
            [
                (names.index(name) + 1, one.answers)
                for one in collection.questions
                if (name := next(iter(one.relevant))) in names
            ],
        )
        for names in list(articles.values())[1::2]
    ]


def turns_of(said: Sequence[str]) -> list[PastTurn]:
    """Return texts as the questions of turns."""
    return [PastTurn(number, ({"role": "user", "content": text},)) for number, text in enumerate(said, 1)]


def text_of(turn: PastTurn) -> str:
    """Return what a person said in a turn."""
    return " ".join(str(turn.messages[0]["content"]).split())


if __name__ == "__main__":
    main()
