"""What an answer says for a cell of a table over documents."""

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


@pytest.mark.parametrize(
    ("written", "number", "doubt"),
    [
        ("2.300 Euro", 2300, None),
        ("50.000 EUR", 50_000, None),
        ("EUR 3'480.00", 3480, None),
        ("1.234.567,50 €", 1_234_567.5, None),
        ("EUR 12,300.00", 12_300, None),
        ("12.50 €", 12.5, None),
        ("EUR 2.5 million", 2_500_000, None),
        ("2,5 Mio. EUR", 2_500_000, None),
        ("45 days", None, "wrong_type"),
        ("six weeks", None, "wrong_type"),
        ("USD 12,300.00", None, "wrong_type"),
    ],
)
def test_an_amount_is_its_number_or_of_another_unit(written: str, number: float | None, doubt: str | None) -> None:
    said = cell(written, f"The total amount is {written}.", "What is the total amount in EUR?", "number")
    assert said[2:] == (number, doubt)


def test_a_figure_that_may_be_two_numbers_is_to_be_checked() -> None:
    assert cell("2.300 kg", "It weighs 2.300 kg.", "How much does it weigh?", "number")[2:] == (None, "wrong_type")


def test_another_facts_contradiction_is_none_of_the_cells() -> None:
    text = (
        "The contract starts on 1 January 2025. The contract price is EUR 7,500.00 for the contract. "
        "The contract price is EUR 7,900.00 for the contract."
    )
    assert cell("2025-01-01", text, "When does the contract start?", "date")[:2] == ("value", "2025-01-01")
    priced = cell("EUR 7,500.00", text, "What is the contract price?", "number")
    assert priced[0] == "disagreement"


@pytest.mark.parametrize(
    ("sentence", "outcome", "value"),
    [("Pets need the consent of the owner.", "not_found", ""), ("Pets allowed: no.", "value", "no")],
)
def test_without_a_model_yes_or_no_is_only_what_is_written_so(sentence: str, outcome: str, value: str) -> None:
    quote = f"Here is what your documents say:\n\n> {sentence} [1]"
    result = result_about(quote, sentence, "Are pets allowed?", "yes_no", model=None)
    assert (result.outcome, result.value, result.doubt, result.quote) == (outcome, value, None, sentence)


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


@pytest.mark.parametrize(
    ("answer", "question", "doubt"),
    [
        ("no [1]", "Are pets allowed?", None),
        ("No: pets are not allowed [1]", "Are pets allowed?", None),
        ("yes [1]", "Are pets allowed?", "not_in_passage"),
        ("yes [1]", "Is smoking allowed?", None),
        ("no [1]", "Is smoking allowed?", "not_in_passage"),
        ("no [1]", "Is there parking?", None),
        ("yes [1]", "Is there parking?", "not_in_passage"),
        ("yes [1]", "Is the contract terminable without cause?", "other_words"),
        ("yes", "Is smoking allowed?", "not_cited"),
    ],
)
def test_yes_or_no_is_checked_against_its_passage(answer: str, question: str, doubt: str | None) -> None:
    result = result_about(answer, HOUSE, question, "yes_no")
    assert (result.outcome, result.doubt) == ("value", doubt)


@pytest.mark.parametrize(
    ("text", "question", "answer", "doubt"),
    [
        ("Haustiere sind nicht erlaubt.", "Sind Haustiere erlaubt?", "ja [1]", "not_in_passage"),
        ("Haustiere sind erlaubt.", "Sind Haustiere erlaubt?", "ja [1]", None),
        ("Les animaux ne sont pas autorisés.", "Les animaux sont-ils autorisés ?", "non [1]", None),
        ("Les animaux ne sont pas autorisés.", "Les animaux sont-ils autorisés ?", "oui [1]", "not_in_passage"),
        ("No se permiten mascotas.", "¿Se permiten mascotas?", "sí [1]", "not_in_passage"),
        ("不允许养宠物。", "允许养宠物吗？", "是 [1]", "not_in_passage"),  # noqa: RUF001
    ],
)  # fmt: skip
def test_yes_or_no_is_checked_in_other_languages(text: str, question: str, answer: str, doubt: str | None) -> None:
    assert result_about(answer, text, question, "yes_no").doubt == doubt


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
    ("text", "answer", "value", "doubt"),
    [
        ("Start date: 04/05/2024.", "2024-05-04", "2024-05-04", "ambiguous_date"),
        ("Start date: 04/05/2024.", "2024-04-05", "2024-04-05", "ambiguous_date"),
        ("Start date: 04/05/2024.", "04/05/2024", "04/05/2024", "ambiguous_date"),
        ("It starts on 04/05/2024 and was signed on 3 March 2024.", "04/05/2024", "04/05/2024", "ambiguous_date"),
        ("Start date: 25/12/2024.", "2024-12-25", "2024-12-25", None),
        ("Start date: 05/05/2024.", "2024-05-05", "2024-05-05", None),
        ("Start date: 04/05/2024, that is 4 May 2024.", "2024-05-04", "2024-05-04", None),
        ("Der Mietbeginn ist der 04/05/2024, und die Miete ist fällig.", "2024-05-04", "2024-05-04", None),
        ("Der Mietbeginn ist der 04/05/2024, und die Miete ist fällig.", "2024-04-05", "2024-04-05", "ambiguous_date"),
    ],
)
def test_a_date_that_may_be_two_days_is_to_be_checked(text: str, answer: str, value: str, doubt: str | None) -> None:
    said = cell(answer, text, "When does it start?", "date")
    assert (said[1], said[3]) == (value, doubt)


def test_without_a_model_a_date_that_may_be_two_days_is_as_it_is_written() -> None:
    text = "The lease starts on 04/05/2024 at the earliest."
    quote = f"Here is what your documents say:\n\n> {text} [1]"
    result = result_about(quote, text, "When does the lease start?", "date", model=None)
    assert (result.value, result.doubt) == ("04/05/2024", "ambiguous_date")


def test_only_figures_contradict_a_text_and_denials_a_yes_or_no() -> None:
    text = (
        "The tenant is Anna Berg. The tenant is Ben Kahn. The notice period is 30 days. The notice period is 60 days."
    )
    assert cell("Anna Berg", text, "Who is the tenant?", "text")[:2] == ("value", "Anna Berg")
    assert cell("30 days", text, "What is the notice period?", "text")[0] == "disagreement"
    pets = "Pets are allowed in the flat. Pets are not allowed in the flat."
    assert cell("yes", pets, "Are pets allowed in the flat?", "yes_no")[0] == "disagreement"


@pytest.mark.parametrize(
    ("text", "question", "sentence"),
    [
        ("Le loyer est de 900 EUR. La détention d'animaux est interdite. Le dépôt est de 1800 EUR.",
         "Le locataire peut-il avoir des animaux ?", "La détention d'animaux est interdite."),
        ("Die Miete beträgt 900 EUR. Haustierhaltung ist untersagt. Die Kaution beträgt 1800 EUR.",
         "Darf man Haustiere haben?", "Haustierhaltung ist untersagt."),
    ],
)  # fmt: skip
def test_yes_or_no_leads_to_its_sentence_in_other_languages(text: str, question: str, sentence: str) -> None:
    assert result_about("non [1]", text, question, "yes_no").quote == sentence


@pytest.mark.parametrize(
    ("sentence", "doubt"), [("Rewiring, Oak Street: EUR 640.00", "other_words"), ("The rent is EUR 640.00.", None)]
)
def test_without_a_model_a_figure_of_something_else_is_to_be_checked(sentence: str, doubt: str | None) -> None:
    quote = f"Here is what your documents say:\n\n> {sentence} [1]"
    result = result_about(quote, sentence, "What is the rent in EUR?", "number", model=None)
    assert (result.value, result.doubt) == ("EUR 640.00", doubt)


@pytest.mark.parametrize(
    ("text", "answer", "is_said"),
    [
        ("The notice period is sixty (60) days.", "ninety days", False),
        ("The notice period is sixty (60) days.", "60 days", True),
        ("Die Kündigungsfrist beträgt drei Monate.", "sechs Monate", False),
        ("Die Kündigungsfrist beträgt drei Monate.", "drei Monate", True),
        ("Le préavis est de trois mois.", "quatre mois", False),
        ("Signed by Dr. Alan Whitfield.", "Dr. Bob Whitfield", False),
        ("Signed by Dr. Alan Whitfield.", "Dr. Alan Whitfield", True),
        ("The rent is $1,850.00 a month.", "€1,850.00", False),
        ("The rent is EUR 1,850.00 a month.", "€1,850", True),
        ("The rent is USD 118,000 per year.", "USD 118,000 per month", False),
        ("The monthly rent is USD 118,000.", "USD 118,000 per month", True),
        ("The rent is USD 2.5 million.", "USD 2.5", False),
        ("The notice is six months. Repairs within sixty days, for five years.", "sixty months", False),
        ("The notice is six months; repairs within sixty days, for five years.", "six days", False),
        ("The notice is six months; repairs within sixty days, for five years.", "six months", True),
        ("The notice period is 3 months.", "6 months", False),
        ("The notice period is\n3 months.", "3 months", True),
        ("Pets are allowed.", "not allowed", False),
    ],
)
def test_words_are_unmarked_only_if_a_sentence_has_each_of_them(text: str, answer: str, is_said: bool) -> None:
    assert cell(answer, text, "What does it say?", "text")[3] == (None if is_said else "not_in_passage")


RENT = (
    "4. Rent and term of 2024\n\nThe premises at 12 High Street are let for a rent of USD 118,000 per year, due in 30 "
    "days. The deposit is USD 500."
)


@pytest.mark.parametrize(
    ("answer", "is_said"),
    [
        ("USD 118,000", True), ("118,000", True), ("USD 118,000 per year", True), ("USD 118,000 per month", False),
        ("€118,000", False), ("4", False), ("12", False), ("12 High Street", False), ("2024", False),
        ("30 days", False),
    ],
)  # fmt: skip
def test_a_number_is_unmarked_only_as_the_amount_that_is_asked_for(answer: str, is_said: bool) -> None:
    assert (cell(answer, RENT, "What is the rent?", "number")[3] is None) is is_said


def test_other_amounts_than_money_are_verified_by_their_sentence() -> None:
    text = "The house has 12 floors. Employees: 120. The notice period is 30 days."
    for answer, question in {
        "12 floors": "How many floors are there?", "120": "How many employees?", "30 days": "What is the notice period?"
    }.items():  # fmt: skip
        assert cell(answer, text, question, "number")[3] is None
    assert cell("30 days", text, "How many employees?", "number")[3] == "other_words"


@pytest.mark.parametrize("other", ["No pets are allowed.", "Smoking is allowed in the garden."])
@pytest.mark.parametrize("ends", [False, True])
def test_yes_or_no_leads_to_the_sentence_about_its_subject(other: str, ends: bool) -> None:
    sentences = [other, "The Tenant may not sublet.", "Parking is allowed."]
    text = " ".join(reversed(sentences) if ends else sentences)
    result = result_about("no [1]", text, "Is subletting allowed?", "yes_no")
    assert (result.quote, result.doubt) == ("The Tenant may not sublet.", None)
    assert result_about("no [1]", other, "Is subletting allowed?", "yes_no").doubt == "other_words"
    assert result_about("yes [1]", text, "Is subletting allowed?", "yes_no").doubt == "not_in_passage"


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
    assert (result.outcome, result.value, result.doubt) == ("value", value, "not_in_passage")


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
    assert cell(value, text, "What does it say?", "text")[3] == "not_in_passage"


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(
    ("question", "subject", "other"),
    [
        ("Is flood covered?", "Flood and fire are not insured.", "Ransom payments are covered."),
        ("Is theft included?", "Theft is not insured.", "Fire damage is included."),
        ("Ist Hochwasser versichert?", "Hochwasser ist nicht gedeckt.", "Sturm ist versichert."),
    ],
)
def test_a_yes_rests_on_the_sentence_about_its_subject(question: str, subject: str, other: str, ends: bool) -> None:
    text = " ".join([other, subject] if ends else [subject, other])
    assert result_about("yes [1]", text, question, "yes_no").doubt is not None
    damage = "Water damage is covered. Flood is not insured."
    assert result_about("yes [1]", damage, "Is flood damage covered?", "yes_no").doubt == "other_words"
    no = result_about("no [1]", text, question, "yes_no")
    assert (no.quote, no.doubt) == (subject, None)
