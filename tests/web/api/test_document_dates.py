"""Documents have a date, from what they say or from their file, which a person can correct; it selects documents."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.documents.intake import Intake
from rag_assistant.documents.sources.folder import file_at, is_file
from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.documents import found, path
from tests.web.conftest import until, upload

POLICY = "# Refunds\n\n{}\n\nCustomers may return goods within {} days of delivery if the box has not been opened.\n"
OLD, NEW = POLICY.format("Valid from 4 January 2023", 30), POLICY.format("Valid from 1 June 2024", 60)


def dated(client: FlaskClient, document: dict[str, object]) -> tuple[str, str]:
    data = client.get(path(document)).json
    return data["date"], data["date_from"]


def test_a_document_is_dated_by_its_text_then_its_name_then_the_day_it_was_added(client: FlaskClient) -> None:
    today = datetime.now(UTC).date().isoformat()
    assert dated(client, upload(client, OLD, "policy-2022.md")) == ("2023-01-04", "text")
    assert dated(client, upload(client, "Seventeen geese.", "geese-2022.txt")) == ("2022", "name")
    assert dated(client, upload(client, "Forty geese.", "geese.txt")) == (today, "added")


@pytest.mark.long
def test_a_file_of_a_folder_is_dated_by_its_last_change(
    client: FlaskClient, services: Services, tmp_path: Path
) -> None:
    file = tmp_path / "geese.txt"
    file.write_text("Seventeen geese.")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    document, _ = Intake(services.library).take_in(file_at(file, [file]), is_file)
    assert (document.date, document.date_from) == ("2023-11-14", "file")
    file.write_text("Eighteen geese.")
    os.utime(file, (1_710_000_000, 1_710_000_000))
    Intake(services.library).take_in(file_at(file, [file]), is_file)
    until(lambda: services.documents.get(document.id).date == "2024-03-09")


def test_a_person_corrects_a_date_and_takes_the_correction_back(client: FlaskClient) -> None:
    document = upload(client, OLD, "policy.md")
    changed = client.patch(path(document), json={"date": "2024-02"}).json
    assert (changed["date"], changed["date_from"]) == ("2024-02", "person")
    assert client.patch(path(document), json={"name": "rules.md"}).json["date"] == "2024-02"
    back = client.patch(path(document), json={"date": None}).json
    assert (back["date"], back["date_from"]) == ("2023-01-04", "text")


@pytest.mark.long
@pytest.mark.parametrize("date", ["2024-02-30", "2024-13", "24", "4 May 2024", "2024-5-1", 2024])
def test_what_is_no_day_is_refused(client: FlaskClient, date: object) -> None:
    document = upload(client, OLD, "policy.md")
    refused = client.patch(path(document), json={"date": date})
    assert refused.status_code in (400, 422)
    assert "a date such as 2024-05-31, 2024-05 or 2024" in refused.json["error"]["message"]


@pytest.mark.long
def test_a_newer_version_brings_its_own_date(client: FlaskClient) -> None:
    document = upload(client, OLD, "policy.md")
    client.patch(path(document), json={"date": "2020"})
    upload(client, NEW, "policy.md", replaces=str(document["document_id"]))
    until(lambda: dated(client, document) == ("2024-06-01", "text"))


@pytest.mark.long
def test_dates_select_the_documents_that_are_searched(client: FlaskClient, stub: StubModel) -> None:
    old, new = (upload(client, text, f"{n}.md")["document_id"] for n, text in enumerate((OLD, NEW)))
    for scope, expected in (
        ({"after": "2023-06"}, {new}),
        ({"before": "2023"}, {old}),
        ({"after": "2023", "before": "2024-06-01"}, {old, new}),
        ({"after": "2025"}, set()),
    ):
        assert {one["document_id"] for one in found(client, "return goods", **scope)} == expected
    stub.replies.append(Reply("60 days [1]."))
    reversed_range = {"after": "2024-09-01", "before": "2024-01"}
    for refused in (
        client.post("/api/query", json={"question": "When?"} | reversed_range),
        client.get("/api/search", query_string={"q": "When?"} | reversed_range),
        client.post("/api/projects", json={"name": "Late"} | reversed_range),
    ):
        assert refused.status_code == 422
        assert "after is 2024-09-01, which is later than before, 2024-01." in refused.json["error"]["message"]
    answer = client.post("/api/query", json={"question": "When may I return goods?", "after": "2024"}).json
    assert [(one["document_id"], one["date"], one["date_from"]) for one in answer["sources"]] == [
        (new, "2024-06-01", "text")
    ]
    assert client.get("/api/search?q=goods&after=soon").status_code in (400, 422)
    conversation = client.get(f"/api/conversations/{answer['conversation_id']}").json
    assert (conversation["scope"]["after"], conversation["scope"]["before"]) == ("2024", None)


def test_the_model_reads_the_date_of_a_passage_unless_it_is_only_when_it_was_added(
    client: FlaskClient, stub: StubModel
) -> None:
    upload(client, OLD, "policy.md")
    upload(client, "Customers may return geese and goods at the lighthouse.", "geese.txt")
    stub.replies.append(Reply("30 days [1]."))
    client.post("/api/query", json={"question": "When may customers return goods?"})
    sent = stub.requests[-1].body["messages"][-1]["content"]
    assert "(policy.md, 2023-01-04)" in sent
    assert "(geese.txt)" in sent


def test_what_is_current_is_answered_by_the_newer_version_and_the_other_is_told_once(
    client: FlaskClient, stub: StubModel
) -> None:
    old, new = (upload(client, text, name)["document_id"] for text, name in ((OLD, "policy.md"), (NEW, "policy v2.md")))
    today = datetime.now(UTC).date().isoformat()
    for question, expected, newer, time in (
        ("Within how many days may customers currently return goods?", [new, old], "60 days", today),
        ("Within how many days could customers return goods in 2023?", [old, new], "30 days", "2023"),
        ("Within how many days may customers return goods?", None, "60 days", None),
    ):
        ids = [one["document_id"] for one in found(client, question)]
        assert ids == expected if expected else set(ids) == {old, new}
        stub.replies.append(Reply("So it is [1]."))
        answer = client.post("/api/query", json={"question": question}).json
        assert [one["document_id"] for one in answer["sources"]] == ids
        (told,) = answer["search"]["disagreements"]
        stated = {answer["sources"][n - 1]["date"] for numbers in told["passages"] for n in numbers}
        assert (sorted(told["values"]), told["newer"], told["time"]) == (["30 days", "60 days"], newer, time)
        page = client.get(f"/turns/{answer['turn_id']}/receipt").text
        assert ("When this was answered, the newest of these dated up to 2023 said 30 days." in page) == (
            time == "2023"
        )
        assert stated == {"2023-01-04", "2024-06-01"}
        assert not any("days" in note for note in answer["notes"])
