"""What an answer says for a cell of a table over documents."""

import json
from datetime import UTC, datetime

import pytest

from rag_assistant.answering.cell_values import result_of
from rag_assistant.conversations.summary_lines import LEAD_NEAR
from rag_assistant.records import CellResult, GridColumn, Source, Turn

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def cell(answer: str, text: str, question: str, kind: str) -> tuple[str, str, float | None, str | None]:
    """Return outcome, value, number and doubt of a model's answer to a question about one passage."""
    result = result_about(f"{answer} [1]", text, question, kind)
    return result.outcome, result.value, result.number, result.doubt


def result_about(answer: str, text: str, question: str, kind: str, model: str | None = "stub") -> CellResult:
    return result_of(turn_about(answer, text, question, model), GridColumn(1, "", question, kind))  # type: ignore[arg-type]


def turn_about(answer: str, text: str, question: str, model: str | None = "stub") -> Turn:
    source = Source(n=1, document_id=1, document="a.txt", page=None, start=0, end=len(text), text=text, score=1.0)
    return Turn(
        id=1, conversation_id=1, number=1, question=question, answer=answer, status="completed",
        sources=(source,), model=model, created_at=NOW,
    )  # fmt: skip


def test_another_facts_contradiction_is_none_of_the_cells() -> None:
    text = (
        "The contract starts on 1 January 2025. The contract price is EUR 7,500.00 for the contract. "
        "The contract price is EUR 7,900.00 for the contract."
    )
    assert cell("2025-01-01", text, "When does the contract start?", "date")[:2] == ("value", "2025-01-01")
    priced = cell("EUR 7,500.00", text, "What is the contract price?", "number")
    assert (priced[1], priced[3]) == ("EUR 7,500.00", "other_values")


def test_a_value_leads_to_its_sentence_or_else_to_the_beginning_of_its_passage() -> None:
    text = "Rules of the house\n\nThe gate is green. The tenant pays EUR 900 each month. Dogs may live."
    rent = result_about("900 EUR [1]", text, "Wie hoch ist die Miete?", "number")
    assert rent.quote == "The tenant pays EUR 900 each month."
    signed = result_about("2024-05-03 [1]", "The garden is nice. Signed 3 May 2024. It is big.", "签署日期", "date")
    assert signed.quote == "Signed 3 May 2024."
    pets = result_about("ja [1]", text, "Sind Haustiere erlaubt?", "yes_no")
    assert (pets.start, pets.end) == (0, len(text))


def test_a_value_leads_to_the_sentence_that_has_it_in_whatever_language_it_is_asked() -> None:
    lease = "Die monatliche Miete beträgt 1.180,50 EUR. Die Kündigungsfrist beträgt 3 Monate zum Monatsende."
    notice = result_about("3 Monate [1]", lease, "What is the notice period?", "text")
    assert notice.quote == "Die Kündigungsfrist beträgt 3 Monate zum Monatsende."
    invoice = "Rewiring, Oak Street: EUR 640.00\nCall-out fee: EUR 60.00\nTotal amount due: EUR 700.00"
    wrong = result_about("EUR 640.00 [1]", invoice, "What is the total amount?", "number")
    assert (wrong.value, wrong.quote) == ("EUR 640.00", "Rewiring, Oak Street: EUR 640.00")
    due = result_about("EUR 700.00 [1]", invoice, "What is the total amount?", "number")
    assert due.quote == "Total amount due: EUR 700.00"


def test_nothing_is_a_models_answer_where_no_passage_was_found() -> None:
    source = result_about("not found", "Herons.", "What is the rent?", "number")
    turn = Turn(1, 1, 1, "completed", "What is the rent?", "not found", NOW, model="stub")
    assert (source.model, result_of(turn, GridColumn(1, "", turn.question, "number")).model) == ("stub", None)


HOUSE = (
    "Rules of the house. Pets are not allowed. Smoking is allowed in the garden. The rent does not include heating. "
    "The notice period is 30 days. Parking: no"
)


@pytest.mark.parametrize("kind", ["text", "number", "date", "yes_no"])
@pytest.mark.parametrize(
    "answer",
    [
        "The documents do not say.", "The lease doesn't mention it [1]", "No information is given", "N/A",
        "I could not find this in the passages.", "Die Dokumente enthalten dazu nichts.", "Keine Angabe [1]",
        "Das geht aus den Unterlagen nicht hervor.", "Les documents ne le précisent pas.", "Aucune information.",
        "Los documentos no lo mencionan.", "No se especifica en el texto", "文档没有说明。", "未提及",
        "لا تذكر المستندات ذلك.",
    ],
)  # fmt: skip
def test_a_refusal_is_not_found_in_every_language(answer: str, kind: str) -> None:
    result = result_about(answer, HOUSE, "What is the tax number?", kind)
    assert (result.outcome, result.value) == ("not_found", "")


@pytest.mark.parametrize(
    "value", ["The rent does not include heating", "Pets are not allowed", "30 days", "not included"]
)
def test_what_a_passage_denies_is_a_value(value: str) -> None:
    assert cell(value, HOUSE, "What is excluded?", "text")[:2] == ("value", value)


@pytest.mark.parametrize(
    ("answer", "kind", "value"),
    [
        ("Three months [1]. The documents do not say more.", "text", "Three months"),
        ("The passages do not answer directly. The nearest: GBP 54,000 [1].", "number", "GBP 54,000"),
        ("Three months. The documents do not say more [1].", "text", "Three months"),
        ("No [1]. The documents do not mention exceptions.", "yes_no", "no"),
    ],
)
def test_a_value_beside_a_refusal_is_to_be_checked(answer: str, kind: str, value: str) -> None:
    text = "The notice period is three months, the price GBP 54,000. Pets are not allowed."
    result = result_about(answer, text, "What is the notice period, the price, and are pets allowed?", kind)
    assert (result.outcome, result.value) == ("value", value)
    assert result.doubt in ("unverified", "more_answered")


@pytest.mark.parametrize("answer", ["I don't know.", "Ich weiß es nicht.", "Je ne sais pas.", "No lo sé.", "不知道"])
def test_not_knowing_is_not_found(answer: str) -> None:
    assert cell(answer, HOUSE, "What is the tax number?", "text")[:2] == ("not_found", "")


@pytest.mark.parametrize(
    ("kind", "question"), [("text", "Who rents?"), ("number", "What is the rent?"), ("yes_no", "May dogs live?")]
)
def test_without_a_model_the_nearest_sentence_is_no_answer_but_kept(kind: str, question: str) -> None:
    sentence = "Yes: the landlord asks for EUR 900 each month."
    answer = f"{LEAD_NEAR}\n\n> {sentence} [1]"
    result = result_about(answer, sentence, question, kind, model=None)
    assert (result.outcome, result.value, result.number, result.quote) == ("not_found", "", None, sentence)


@pytest.mark.parametrize(("value", "text"), [("The", "Signed by Ann."), ("¥900", "The price is ₩900."), ("15", "1.5")])
def test_signs_points_and_empty_words_are_no_proof(value: str, text: str) -> None:
    assert cell(value, text, "What does it say?", "text")[3] == "unverified"


def doubt_of(answer: str, text: str, question: str, kind: str) -> str | None:
    """Return what is doubtful about an answer as text; it must be the same in JSON."""
    value = json.dumps({"value": answer == "yes" if kind == "yes_no" else answer, "passage": 1})
    as_text, as_json = (result_about(one, text, question, kind) for one in (f"{answer} [1]", value))
    assert as_text == as_json
    return as_text.doubt


@pytest.mark.parametrize(
    ("kind", "question", "answer", "text"),
    [
        ("text", "What is the notice period?", "60 days", "The notice period is “60\u00a0days”."),
        ("text", "Wie lang ist die Kündigungsfrist?", "drei Monate", "Die Kündigungsfrist beträgt drei Monate."),
        ("text", "Who signed?", "Dr. Alan Whitfield", "Signed by Dr. Alan Whitfield."),
        ("text", "Who is the tenant?", "Ben Kahn", "Between Anna Berg (landlord) and Ben Kahn (tenant)."),
        ("text", "Who is the client?", "Berg & Son", "Supplier: Kahn Ltd\nClient: Berg & Son"),
        ("number", "What is the rent?", "EUR 1,250", "The rent is EUR 1,250."),
        ("number", "What is the rent in EUR?", "€1,850", "The rent is EUR 1,850.00 and due within 30 days."),
        ("number", "What is the monthly rent?", "EUR 900", "The monthly rent is EUR 900."),
        ("number", "What is the rent per month?", "$40", "The rent is $40 monthly."),
        ("number", "What is the price in EUR?", "2,5 Mio. EUR", "Der Preis (price) beträgt 2,5 Mio. EUR."),
        ("number", "How many employees?", "120", "Employees: 120"),
        ("number", "What is the limit of flood?", "50", "| Risk | Limit |\n|--|--|\n| Fire | 7 |\n| Flood | 50 |"),
        ("number", "What is the speed?", "12 km/h", "The speed is 12 km/h."),
        ("number", "How many days of leave?", "30", "The leave is 30 days."),
        ("date", "When was it signed?", "2024-05-03", "Signed on 3 May 2024."),
        ("date", "When was it signed?", "2024-12-25", "Signed on 25/12/2024."),
        ("date", "When was it founded?", "1887-06-01", "It was founded on 1 June 1887."),
        ("yes_no", "Is there parking?", "no", "Parking: No"),
        ("yes_no", "Is fire insured?", "yes", "| Risk | Insured |\n|---|---|\n| Fire | Yes |\n| Flood | No |"),
    ],
)  # fmt: skip
def test_a_value_is_unmarked_where_a_sentence_says_just_that(kind: str, question: str, answer: str, text: str) -> None:
    assert doubt_of(answer, text, question, kind) is None


@pytest.mark.parametrize(
    ("kind", "question", "answer", "text", "doubt"),
    [
        ("text", "What is the notice period?", "ninety days", "The notice period is 90 days.", "unverified"),
        ("text", "What is the notice period?", "12", "The notice period is 120 days.", "unverified"),
        ("text", "What is the notice period?", "months", "The notice period is six months.", "unverified"),
        ("text", "Who is the employer?", "Clara Voss", "The clerk is Clara Voss. The employer is B AG.", "unverified"),
        ("text", "What is the status of pets?", "allowed", "The status of pets is not allowed.", "unverified"),
        ("number", "What is the rent?", "£4", "The rent is £4,250.", "unverified"),
        ("number", "What is the rent?", "EUR 900", "The rent is USD 900.", "unverified"),
        ("number", "What is the rent?", "EUR 900", "The rent is -EUR 900.", "unverified"),
        ("number", "What is the rent?", "USD 2.5", "The rent is USD 2.5 million.", "unverified"),
        ("number", "What is the rent?", "USD 900 per month", "The rent is USD 900 per year.", "unverified"),
        ("number", "How many months is the notice?", "90", "The notice is 90 days.", "unverified"),
        ("number", "What is the rent per year?", "£4,250", "The rent is £4,250 per month.", "unverified"),
        ("number", "What is the rent in EUR?", "900", "The rent is 900.", "unverified"),
        ("number", "What does the lease cover?", "12", "Section 12 of the lease covers repairs.", "unverified"),
        ("number", "What is the deposit?", "EUR 900", "The rent is EUR 900. The deposit is EUR 1,800.", "unverified"),
        ("number", "What is the rent?", "EUR 900", "The rent is EUR 900, the deposit EUR 1,800.", "unverified"),
        ("number", "How long is the term?", "3 months", "The term is 1 to 3 months.", "unverified"),
        ("number", "What is the rent?", "EUR 900", "The rent is about EUR 900.", "unverified"),
        ("number", "What is the rent?", "EUR 900", "The rent is EUR 900 unless agreed otherwise.", "unverified"),
        ("number", "What is the rent?", "EUR 900", "The rent is EUR 900. The rent is due in 5 days.", "other_values"),
        ("number", "What is the rent?", "EUR 900", "The rent is EUR 900. The rent of 2020: EUR 800.", "other_values"),
        ("number", "What is the balance?", "2.300 kg", "The balance is 2,300 kg.", "unverified"),
        ("date", "When does it start?", "2024-05-04", "It starts on 04/05/2024.", "ambiguous_date"),
        ("date", "When does it start?", "04/05/2024", "It starts on 04/05/2024.", "ambiguous_date"),
        ("date", "When does it start?", "2024-05-05", "It starts on 4 May 2024.", "unverified"),
        ("date", "When does it end?", "2024-05-04", "It starts on 4 May 2024.", "unverified"),
        ("yes_no", "Is there parking?", "yes", "Parking: No", "other_values"),
        ("yes_no", "Is there parking?", "yes", "Lift: Yes. Parking: no. Limit: 500 EUR.", "other_values"),
        ("yes_no", "Is there parking?", "yes", "- Lift: yes\n- Parking: no", "other_values"),
        ("yes_no", "Is flood damage covered?", "no", "Water damage is covered. Flood is not.", "unverified"),
        ("yes_no", "Are pets allowed?", "yes", "Pets: Yes, if the landlord agrees\nAllowed: pets", "unverified"),
    ],
)  # fmt: skip
def test_a_value_is_marked_where_no_sentence_says_just_that(
    kind: str, question: str, answer: str, text: str, doubt: str
) -> None:
    assert doubt_of(answer, text, question, kind) == doubt


@pytest.mark.parametrize("answer", ["yes", "no"])
@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Pets are allowed unless the landlord objects.", "Are pets allowed?"),
        ("Nothing here says that pets are not allowed.", "Are pets allowed?"),
        ("Flood is insured but theft is not.", "Is theft insured?"),
        ("The fee is non-refundable.", "Is the fee refundable?"),
        ("Haustiere sind gestattet, sofern der Vermieter zustimmt.", "Sind Haustiere gestattet?"),
        ("No se permiten mascotas.", "¿Se permiten mascotas?"),
    ],
)
def test_yes_or_no_is_to_be_checked_by_its_sentence(text: str, question: str, answer: str) -> None:
    result = result_about(f"{answer} [1]", f"The garden is nice. {text}", question, "yes_no")
    assert (result.outcome, result.value, result.doubt, result.quote) == ("value", answer, "unverified", text)


@pytest.mark.parametrize(
    ("kind", "sentence", "value"),
    [
        ("number", "The rent is EUR 640.00.", "EUR 640.00"),
        ("number", "Rewiring, Oak Street: EUR 640.00", "EUR 640.00"),
        ("date", "The rent is due on 3 May 2024.", "2024-05-03"),
        ("date", "The rent is due on 04/05/2024.", "04/05/2024"),
        ("yes_no", "Rent: no", "no"),
        ("number", "The rent of house AP-77120 is free.", None),
        ("number", "The rent stands in section 12 of this.", None),
        ("yes_no", "The rent needs no consent.", None),
    ],
)
def test_without_a_model_what_is_read_from_a_quote_is_always_marked(
    kind: str, sentence: str, value: str | None
) -> None:
    result = result_about(
        f"Here is what your documents say:\n\n> {sentence} [1]", sentence, "What is the rent?", kind, None
    )
    expected = ("value", value, "not_understood") if value else ("not_found", "", None)
    assert (result.outcome, result.value, result.doubt) == expected
    assert result.quote == sentence


def test_without_a_model_a_text_is_the_quoted_sentence() -> None:
    sentence = "The rent is not EUR 640.00."
    quote = f"Here is what your documents say:\n\n> {sentence} [1]"
    result = result_about(quote, sentence, "What is the rent?", "text", model=None)
    assert (result.value, result.quote, result.doubt) == (sentence.rstrip("."), sentence, None)
