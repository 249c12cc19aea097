"""Whether what a table over documents says about a value is true of the documents, and of the sentence shown with it.

The documents are built of places that are known, so nothing of the product is needed to tell what is true.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assistant.records import CellResult
from tests.answering.test_cell_values import result_about

SUBJECTS = ["rent", "deposit", "fee", "garage", "rent garage", "gold fee", "gold rent garage", "deposit fee"]
AMOUNTS = ["EUR 900", "900 EUR", "USD 900", "900", "EUR 40", "€40", "40", "EUR 7", "7", "USD 7", "€40k", "EUR 900 k"]
SAID = ["yes", "no"]
LIMITS = {"not", "about"}
SIGNS = {"€": "EUR"}


class Place(NamedTuple):
    """A sentence, a cell or a value with its key: all words that a reader sees with it, and what it says."""

    words: set[str]
    values: list[str]
    is_cell: bool


class Document(NamedTuple):
    text: str
    places: list[Place]


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+|eur|usd", text.lower().replace("€", " eur ")))


def parse(value: str) -> tuple[float, str | None]:
    """Return the amount and the currency of a value."""
    number = re.search(r"\d+", value)
    assert number
    unit = re.search(r"EUR|USD|€", value)
    return float(number[0]) * (1000 if "k" in value else 1), SIGNS.get(unit[0], unit[0]) if unit else None


def place_of(text: str, above: str, *values: str, is_cell: bool = False) -> Place:
    return Place(words_of(f"{text} {above}"), list(values), is_cell)


@st.composite
def documents(draw: st.DrawFn, values: list[str]) -> Document:
    """Draw a document of a few blocks, each with one or more facts."""
    heading = draw(st.sampled_from(["", "Costs", "Costs in EUR", "Gold"]))
    blocks, places = [f"# {heading}"] if heading else [], list[Place]()

    def fact() -> tuple[str, str]:
        return draw(st.sampled_from(SUBJECTS)), draw(st.sampled_from(values))

    def pair() -> str:
        subject, value = fact()
        places.append(place_of(f"{subject} {value}", heading, value, is_cell=True))
        return f"{subject.capitalize()}: {value}"

    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["sentence", "double", "pairs", "line", "list", "table"]))
        if kind == "sentence":
            (subject, value), limit = fact(), draw(st.sampled_from(["", "", "about ", "not "]))
            places.append(place_of(f"{subject} {limit} {value}", heading, value))
            blocks.append(
                f"The {subject} of Berg Ltd. The park is green." if draw(st.booleans()) else "The park is green."
            )
            blocks[-1] += f" The {subject} is {limit}{value}."
        elif kind == "double":
            (first, one), (second, two) = fact(), fact()
            places.append(place_of(f"{first} {one} {second} {two}", heading, one, two))
            blocks.append(f"The {first} is {one} and the {second} is {two}.")
        elif kind in ("pairs", "line", "list"):
            joint, mark = {
                "pairs": ("\n", ""),
                "line": (draw(st.sampled_from([". ", "; "])), ""),
                "list": ("\n", "- "),
            }[kind]
            blocks.append(joint.join(mark + pair() for _ in range(draw(st.integers(1, 3)))))
            blocks[-1] += "." if joint == ". " else ""
        else:
            heads = draw(
                st.sampled_from([["Thing", "Price"], ["No.", "Thing", "Price (EUR)"], ["Thing", "Price", "Stock"]])
            )
            lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
            for n in range(draw(st.integers(1, 3))):
                cells = {"No.": str(n + 1), "Thing": draw(st.sampled_from(SUBJECTS))}
                row = [cells.get(head) or draw(st.sampled_from(values)) for head in heads]
                lines.append(f"| {' | '.join(row)} |")
                for at, head in enumerate(heads):
                    numbers = [row[at]] if head != "Thing" else []
                    places.append(place_of(f"{' '.join(row)} {head}", heading, *numbers, is_cell=True))
            blocks.append("\n".join(lines))
    return Document("\n\n".join(blocks), places)


def check(
    document: Document, result: CellResult, about: set[str], unit: set[str], is_answer: Callable[[str], bool]
) -> None:
    """Check what is said beside a value: that one place says it, or that one with the question's words has another."""
    assert (result.quote or "") in document.text
    saying = [one for one in document.places if about | unit <= one.words and any(map(is_answer, one.values))]
    if result.doubt is None:
        assert any(all(map(is_answer, one.values)) and not LIMITS & one.words for one in saying)
    elif result.doubt == "other_values":
        assert any(about <= one.words and not all(map(is_answer, one.values)) for one in document.places)
    else:
        assert result.doubt == "unverified"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(documents(AMOUNTS), st.sampled_from(SUBJECTS), st.sampled_from(["", "EUR", "USD"]), st.sampled_from(AMOUNTS))
def test_what_is_said_of_an_amount_is_true(document: Document, subject: str, unit: str, answer: str) -> None:
    question = f"What is the {subject}{f' in {unit}' if unit else ''}?"
    result = result_about(f"{answer} [1]", document.text, question, "number")
    amount, currency = parse(answer)
    # In a sentence, what is in another currency than the question's is of something else.
    places = [
        one._replace(values=[v for v in one.values if not unit or parse(v)[1] in (None, unit)])
        for one in document.places
    ]
    check(
        document._replace(places=places), result, words_of(subject), words_of(unit),
        lambda value: parse(value)[0] == amount and currency in (None, parse(value)[1]),
    )  # fmt: skip


@settings(max_examples=80, deadline=None, derandomize=True)
@given(documents(SAID), st.sampled_from(SUBJECTS), st.sampled_from(SAID))
def test_what_is_said_of_yes_or_no_is_true(document: Document, subject: str, answer: str) -> None:
    result = result_about(f"{answer} [1]", document.text, f"Is there a {subject}?", "yes_no")
    cells = document._replace(places=[one for one in document.places if one.is_cell])
    check(cells, result, words_of(subject), set(), answer.__eq__)
