"""Of passages that are versions of each other, the one valid at the time asked for comes first; none is left out."""

from datetime import date

import pytest
from msgspec.structs import replace

from rag_assistant.records import DateOrigin, Passage
from rag_assistant.retrieval.versions import are_versions, preferred, time_of

TODAY = date(2026, 11, 29)
NOW = TODAY.isoformat()
POLICY = "Customers may return goods within {} days of delivery if the box has not been opened, and get a refund."


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the current refund period?", NOW),
        ("Is it still 30 days?", NOW),
        ("How long may I return goods now?", NOW),
        ("Which is the latest price?", NOW),
        ("Wie lange gilt das derzeit?", NOW),
        ("Gilt die Frist noch?", NOW),
        ("Quel est le délai actuel ?", NOW),
        ("¿Cuál es el plazo vigente?", NOW),
        ("现在的退款期限是多久？", NOW),  # noqa: RUF001
        ("ما هي المدة الحالية؟", NOW),
        ("What was the refund period in 2023?", "2023"),
        ("What did the policy of March 2023 say?", "2023-03"),
        ("What was it on 4 March 2023?", "2023-03-04"),
        ("What was it last year?", "2025"),
        ("Wie war es letztes Jahr?", "2025"),
        ("What will it be next year?", "2027"),
        ("Wie hoch ist es im nächsten Jahr?", "2027"),
        ("¿Cuánto será el próximo año?", "2027"),
        ("What was it before 2023?", "2022-12-31"),
        ("What was it before 4 March 2023?", "2023-03-03"),
        ("Wie war es vor März 2023?", "2023-02-28"),
        ("What is it since 2023?", NOW),
        ("What has been the rule since March 2023?", NOW),
        ("What does the policy from 2019 say?", "2019"),
        ("What will it be after 4 March 2027?", "2027-03-04"),
    ],
)
def test_a_question_names_the_time_it_is_about(question: str, expected: str) -> None:
    assert time_of(question, TODAY) == expected


@pytest.mark.parametrize(
    "question",
    [
        "How long is the refund period?",
        "What do you know?",
        "How many are known?",
        "Who sold 2,023 geese?",
        "Wer knows?",
        "How many days can I carry over to next year?",
        "Wie viele Tage kann ich ins nächste Jahr übertragen?",
        "May days be carried over from last year?",
    ],
)
def test_a_question_without_a_word_for_a_time_is_about_none(question: str) -> None:
    assert time_of(question, TODAY) is None


def passage(number: int, text: str, day: str, origin: DateOrigin = "text", score: float = 0.8) -> Passage:
    return Passage(
        chunk_id=number,
        document_id=number,
        document=f"policy v{number}.txt",
        start=0,
        end=len(text),
        text=text,
        page=None,
        score=score,
        date=day,
        date_from=origin,
    )


OLD, NEW = passage(1, POLICY.format(30), "2023-01-04", score=0.9), passage(2, POLICY.format(60), "2024-06")
GEESE = passage(3, "Seventeen geese live at the lighthouse, and hiss at everybody who comes near.", "2025-01-01")


def ids(passages: list[Passage]) -> list[int]:
    return [one.document_id for one in passages]


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (NOW, [2, 1, 3]),
        ("2024", [2, 1, 3]),
        ("2024-05", [1, 3, 2]),
        ("2023", [1, 3, 2]),
        ("2022", [1, 3, 2]),
        (None, [1, 3, 2]),
    ],
)
def test_the_version_valid_at_a_time_comes_first_and_nothing_is_left_out(time: str | None, expected: list[int]) -> None:
    assert ids(preferred([OLD, GEESE, NEW], time)) == expected


def test_what_is_valid_only_from_a_day_to_come_is_not_current() -> None:
    to_come = passage(4, POLICY.format(90), "2027-01-01")
    assert ids(preferred([to_come, OLD, NEW], NOW)) == [2, 4, 1]
    assert ids(preferred([OLD, to_come, NEW], "2027-03")) == [4, 1, 2]


def test_the_preferred_version_is_as_good_as_the_one_it_overtakes() -> None:
    assert [one.score for one in preferred([OLD, NEW], NOW)] == [0.9, 0.9]


def test_the_older_version_moves_up_if_it_was_valid_then() -> None:
    assert ids(preferred([NEW, GEESE, OLD], "2023")) == [1, 2, 3]


def test_what_is_called_old_is_not_current_though_its_file_was_changed_later() -> None:
    old = replace(NEW, document="policy_old.md")
    assert preferred([OLD, GEESE, old], NOW) == [OLD, GEESE, old]
    assert preferred([OLD, GEESE, replace(old, document="policy v3.md")], NOW) != [OLD, GEESE, old]
    assert preferred([replace(OLD, document="policy_old.md"), GEESE, NEW], NOW)[0].document_id == NEW.document_id
    by_hand = replace(old, date_from="person")
    assert ids(preferred([OLD, GEESE, by_hand], NOW)) == [2, 1, 3]


@pytest.mark.parametrize("name", ["policy alt.docx", "policy_draft.md", "old policy.md"])
def test_what_is_called_old_is_not_current_without_a_date_either(name: str) -> None:
    old = replace(OLD, document=name, date=NOW, date_from="added")
    for new in (replace(NEW, document="policy.md"), replace(old, document="policy.md", document_id=2)):
        assert ids(preferred([old, GEESE, new], NOW)) == [2, 1, 3]
        assert ids(preferred([old, GEESE, new], None)) == [1, 3, 2]
    later = replace(OLD, document="policy.md", document_id=5, date="2026-01-01", date_from="added")
    assert ids(preferred([old, NEW, later], NOW)) == [2, 1, 5]


def test_what_was_added_later_is_not_newer() -> None:
    old, new = (replace(one, date_from="added") for one in (OLD, NEW))
    assert preferred([old, GEESE, new], NOW) == [old, GEESE, new]


@pytest.mark.parametrize(
    "newer",
    [
        replace(NEW, text="Sixty boats lie in the harbour, and the newest of them is for sale to customers."),
        replace(NEW, date_from="added", date="2026-01-01"),  # When it was added says nothing beside a date of its own.
        replace(NEW, document_id=1),
        replace(NEW, date=None, date_from=None),
        replace(NEW, document="policy Berlin.txt"),
    ],
    ids=["another text", "only added later", "the same document", "without a date", "another name"],
)
def test_what_is_no_newer_version_stays_where_it_is(newer: Passage) -> None:
    assert preferred([OLD, GEESE, newer], NOW) == [OLD, GEESE, newer]


@pytest.mark.parametrize(
    "name",
    [
        "Reisekostenrichtlinie_{}.md",
        "Preise Reinigung {}.csv",
        "Business trip policy {}.md",
        "Training policy {}.md",
        "Meeting guidelines {}.md",
        "Workshop safety rules {}.md",
        "Price list seminars {}.csv",
        "Prüfungsordnung {}.pdf",
        "Rules for events {}.md",
        "Vertragsbedingungen {}.md",
        "Reisekosten {}.md",
        "Règlement des rapports {}.md",
    ],
)
def test_rules_and_prices_of_two_years_are_versions_whatever_they_are_for(name: str) -> None:
    assert are_versions(replace(OLD, document=name.format(2024)), replace(NEW, document=name.format(2025)))


@pytest.mark.parametrize(
    "name",
    [
        "Minutes board {}.md",
        "Offer Acme {}.pdf",
        "Mietvertrag {}.pdf",
        "Training {}.md",
        "Board meeting {}.md",
        "Tagesordnung {}.md",
        "Reisekostenabrechnung {}.md",
        "Invoices {}.csv",
        "Facture {}.pdf",
    ],
)
def test_documents_of_two_times_are_no_versions(name: str) -> None:
    assert not are_versions(replace(OLD, document=name.format(2024)), replace(NEW, document=name.format(2025)))
