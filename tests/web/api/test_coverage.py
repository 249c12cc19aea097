"""A question that needs all of something: what it rests on is in the answer, in the receipt, on the page, and told."""

from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, environment_in, served_before

ASSETS = "asset,place,price\n" + "".join(f"A{n},{'Oslo' if n % 2 else 'Bergen'},{n}\n" for n in range(1, 41))
MINUTES = "# Minutes\n\n" + "\n\n".join(
    f"## Topic {n}\n\n{'The roof was discussed at length. ' * 16}" for n in range(3)
)
LONG = "# Chronicle\n\n" + "\n\n".join(f"## Year {n}\n\n{'The herring came to the harbour. ' * 16}" for n in range(9))


@pytest.fixture(autouse=True)
def short_documents_are_very_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.retrieval.search.MAX_SECTIONS", 3)


@pytest.fixture
def environment(tmp_path: Path, migrated: Path, stub: StubModel, request: pytest.FixtureRequest) -> dict[str, str]:
    documents = ("assets.csv", ASSETS), ("minutes.md", MINUTES), ("chronicle.md", LONG)
    environment = environment_in(tmp_path, served_before(migrated, *documents), stub)
    connected = getattr(request, "param", "a model") == "a model"
    return {name: value for name, value in environment.items() if connected or not name.startswith("OPENAI")}


def said_to(stub: StubModel) -> str:
    return str(stub.requests[-1].messages[-1]["content"])


@pytest.mark.parametrize("environment", ["no model"], indirect=True)
def test_without_a_model_it_is_computed_or_said_to_rest_on_a_part(client: FlaskClient) -> None:
    computed = ask(client, "How many assets are in Oslo?")
    assert computed["search"]["coverage"] == {"read": 40, "of": 40, "unit": "rows"}
    assert "20 of 40 rows, where place is Oslo." in computed["answer"]
    partial = ask(client, "List everything in the chronicle about the herring")
    coverage = partial["search"]["coverage"]
    assert 0 < coverage["read"] < coverage["of"] == 9
    assert f"This rests on {coverage['read']} of 9 sections of these documents." in partial["answer"]
    assert "coverage" not in ask(client, "When did the herring come?")["search"]


def test_a_table_answers_though_the_words_say_that_nothing_is_found(client: FlaskClient) -> None:
    answer = ask(client, "Which is the cheapest of the assets altogether?")
    assert answer["search"]["support"] == "found"
    assert answer["search"]["coverage"] == {"read": 40, "of": 40, "unit": "rows"}
    assert ask(client, "Which is the cheapest of the submarines altogether?")["search"]["support"] == "nothing_found"


def test_a_model_is_told_what_was_computed(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("820 [1]."))
    answer = ask(client, "What is the total price of all assets?")
    assert "Computed from all 40 rows of the table or list in passage [1]: Sum of price: 820. 40 rows." in said_to(stub)
    assert "Computed from all 40 rows." in client.get(f"/turns/{answer['turn_id']}").text


def test_a_model_reads_all_of_a_short_document(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("The roof [1]."))
    answer = ask(client, "Summarise the minutes about the roof", document_ids=[2])
    assert answer["search"]["coverage"] == {"read": 3, "of": 3, "unit": "sections"}
    assert len(answer["sources"]) == answer["search"]["found"] == 3
    assert "The passages are 3 of the 3 sections of their documents.\n" in said_to(stub)


def test_of_a_long_document_a_model_is_told_how_much_it_reads(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("Herring [1]."))
    answer = ask(client, "Summarise the chronicle of the herring", document_ids=[3])
    read = answer["search"]["coverage"]["read"]
    assert answer["search"]["coverage"] == {"read": read, "of": 9, "unit": "sections"}
    assert f"The passages are {read} of the 9 sections of their documents. Say so" in said_to(stub)
    assert f"Based on {read} of 9 sections of these documents." in client.get(f"/turns/{answer['turn_id']}").text
    receipt = client.get(f"/turns/{answer['turn_id']}/receipt", headers=PAGE).text
    assert f"{read} of 9 sections" in receipt
