"""How much of what a summary loses is on its bill: facts planted in recorded conversations, phrased in six languages.

``python -m bench.bill`` needs the shared data. The phrasings of ``bill_phrases.json`` and the values are split into two
halves; the patterns were written with only the first in view. The summary here keeps nothing but the bill.
"""

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from rag_assistant.conversations.bill import bill_of, divided, joined
from rag_assistant.conversations.summary_lines import sentences_in
from rag_assistant.history import estimate_tokens, split_turns
from rag_assistant.records import PastTurn
from tests.testkit.shared_data import shared_jsonl

PHRASES = json.loads((Path(__file__).parent / "bill_phrases.json").read_text())
VALUES = {"number": "numbers", "date": "dates", "name": "names", "file": "files"}
KINDS = ("number", "date", "name", "file", "prohibition", "prohibition", "instruction")
CONVERSATIONS, FACTS = 100, 20
# Token limits aren't measured here.
UNLIMITED = 400_000


def main() -> None:
    """Print what is on the bill and in the summary, for each half of the phrasings, and the length of bills."""
    for half, named in enumerate(("the half that was looked at", "the other half")):
        told, kept = defaultdict(list), defaultdict(list)
        for number, messages in zip(range(CONVERSATIONS), conversations(), strict=False):
            rng = random.Random(number)
            planted = [plant(messages, KINDS[n % len(KINDS)], half, rng) for n in range(FACTS)]
            bill = bill_of(turns_of(messages), "", UNLIMITED)
            summary = joined("They spoke.", bill.lines_to_keep(None))
            assert summary == joined(*divided(summary))
            for kind, sentence, value in planted:
                # Each fact is on the bill once, however often it was said.
                fact = (value if kind in VALUES else sentence).casefold()
                told[kind].append(any(fact in one.text.casefold() for one in bill.items))
                kept[kind].append(sentence in summary)
        lost = [one for kind in told for one in told[kind]]
        print(f"\n{named}: {sum(lost)} of {len(lost)} on the bill, {sum(lost) / len(lost):.1%}")
        for kind in told:
            print(f"| {kind} | {sum(told[kind])} of {len(told[kind])} | word for word by default {sum(kept[kind])} |")
    length: dict[str, int] = defaultdict(int)
    for _, messages in zip(range(CONVERSATIONS), conversations(), strict=False):
        turns = turns_of(messages)
        length["tokens"] += sum(estimate_tokens(one.text) for turn in turns for one in sentences_in(turn))
        for one in bill_of(turns, "", UNLIMITED).items:
            length[one.keep] += 1
            length["kept tokens"] += estimate_tokens(one.line) * (one.keep != "offered")
    per = {name: 1000 * length[name] / length["tokens"] for name in ("always", "ticked", "offered", "kept tokens")}
    print(
        f"\nof 1,000 of {length['tokens']:,} tokens as recorded:", ", ".join(f"{n} {one:.1f}" for n, one in per.items())
    )


def turns_of(messages: list[dict[str, Any]]) -> list[PastTurn]:
    """Return messages as the turns to be summarised."""
    return [PastTurn(n, tuple(turn)) for n, turn in enumerate(split_turns(messages).past, 1)]


def conversations() -> Any:
    """Yield recorded conversations, several of one source joined, as mutable messages."""
    traces = [one for one in shared_jsonl("tool_traces/traces.jsonl") if len(one["messages"]) > 4]
    rng = random.Random(5)
    while True:
        source = rng.choice(traces)["source"]
        some = rng.sample([one for one in traces if one["source"] == source], 4)
        yield [dict(message) for one in some for message in one["messages"] if message["role"] != "system"]


def plant(messages: list[dict[str, Any]], kind: str, half: int, rng: random.Random) -> tuple[str, str, str]:
    """Put a sentence with a fact of a kind into a message, and return both; only users forbid things."""
    language = rng.choice(list(PHRASES["number"]))
    phrase = rng.choice(drawn(kind + language, PHRASES[kind][language], half))
    values = PHRASES["values"][VALUES.get(kind, "things")]
    value = rng.choice(drawn(kind + language, values[language] if isinstance(values, dict) else values, half))
    sentence = phrase.replace("{x}", value)
    sentence = sentence[0].upper() + sentence[1:]
    roles = ("user", "assistant") if kind in VALUES else ("user",)
    completed = [
        one for one in messages if one["role"] in roles and isinstance(one.get("content"), str) and one["content"]
    ]
    message = rng.choice(completed[: max(1, len(completed) - 4)])
    message["content"] = (
        f"{message['content']}\n\n{sentence}" if rng.random() < 0.5 else f"{sentence} {message['content']}"
    )
    return kind, sentence, value


def drawn(seed: str, choices: list[str], half: int) -> list[str]:
    """Return one random half of some texts."""
    return random.Random(seed).sample(choices, len(choices))[half::2]


if __name__ == "__main__":
    main()
