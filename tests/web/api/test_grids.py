"""Tables over documents: each cell is one question about one document, and says what it rests on."""

import csv
import io
import json
import re
import threading
import time
import zipfile
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, insert, select, update

from rag_assistant.answering import grids as filling
from rag_assistant.cli.api import api_here
from rag_assistant.services import Services
from rag_assistant.storage import grids as stored
from rag_assistant.storage.database import Database
from rag_assistant.storage.grids import MAX_CELL_TOKENS, GridStore
from rag_assistant.storage.tables import documents, grid_cells, grids, now
from rag_assistant.web.api import grids as grids_api
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.samples import sample
from tests.testkit.statements import listening
from tests.testkit.stub_model import Reply, Seen, StubModel
from tests.web.conftest import PAGE, ask, post, until, upload

LEASE = "This lease was signed by Anna Berg on 3 May 2024. The rent is EUR 1,250.00 a month."
FEE = {"question": "What is the rent in EUR?", "name": "Rent", "type": "number"}
SIGNED = {"question": "Who signed the lease?", "name": "Signed by"}
BEGUN: dict[str, Any] = {"name": "Leases", "columns": [SIGNED, FEE]}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "POLL_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(filling, "RETRY_SECONDS", 0.05)


def answer_with(stub: StubModel, answers: dict[str, str], **more: Any) -> None:
    """Let a model answer each question, by a word in it, with a text."""

    def reply(seen: Seen) -> Reply:
        question = seen.messages[-1]["content"].rpartition("</passages>")[2]
        return Reply(next(text for word, text in answers.items() if word in question), **more)

    stub.next_reply = reply


def start(client: FlaskClient, body: dict[str, Any] | None = None) -> int:
    made = client.post("/api/grids", json=body or BEGUN)
    assert made.status_code == 201, made.text
    grid_id: int = made.json["grid_id"]
    response = client.post(f"/api/grids/{grid_id}/start", json={})
    assert response.status_code == 200, response.text
    return grid_id


def state(client: FlaskClient, grid_id: int) -> dict[str, Any]:
    return dict(client.get(f"/api/grids/{grid_id}").json)


def rest(client: FlaskClient, grid_id: int) -> dict[str, int]:
    """Return how many cells are in each state once none is waiting."""
    until(lambda: not {"queued", "running"} & state(client, grid_id)["cells"].keys())
    return state(client, grid_id)["cells"]


def rows(client: FlaskClient, grid_id: int, query: str = "") -> list[dict[str, Any]]:
    response = client.get(f"/api/grids/{grid_id}/rows{query}")
    assert response.status_code == 200, response.text
    return response.json["rows"]


def results(client: FlaskClient, grid_id: int) -> list[dict[str, Any]]:
    assert rest(client, grid_id).keys() == {"done"}
    return [cell["result"] for row in rows(client, grid_id) for cell in row["cells"]]


def test_a_cell_has_its_value_and_the_sentence_it_rests_on(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, LEASE, "lease.txt")["document_id"]
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    signed, fee = results(client, grid := start(client))
    assert (signed["outcome"], signed["value"], signed["doubt"]) == ("value", "Anna Berg", None)
    assert LEASE[signed["start"] : signed["end"]].startswith(signed["quote"])
    assert "signed by Anna Berg" in signed["quote"]
    assert "rent" not in signed["quote"]
    assert (fee["value"], fee["number"], fee["model"]) == ("EUR 1,250.00 a month", 1250.0, "stub-model")
    assert state(client, grid)["used_tokens"] > 0
    sent = client.get(f"/api/grids/{grid}/cells/{document}/1").json
    assert sent["answer"] == "Anna Berg [1]"
    assert LEASE in sent["messages"][-1]["content"]
    assert sent["messages"] in [one.messages for one in stub.requests]
    assert client.get("/api/conversations").json["conversations"] == []


def test_an_endpoint_is_sent_a_schema_of_the_value(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, f"{LEASE} Dogs may live there.", "lease.txt")["document_id"]
    answers = {"signed": "Anna Berg", "rent": 1250, "date": "2024-05-03", "dogs": True, "cats": None}
    answer_with(stub, {word: json.dumps({"value": value, "passage": 1}) for word, value in answers.items()})
    day, dogs = (
        {"question": "What is the date of the lease?", "type": "date"},
        {"question": "May dogs live?", "type": "yes_no"},
    )
    columns = [SIGNED, FEE, day, dogs, dogs | {"question": "May cats live?"}]
    cells = results(client, grid := start(client, {"name": "Leases", "columns": columns}))
    assert [one["value"] for one in cells] == ["Anna Berg", "EUR 1,250.00 a month", "2024-05-03", "yes", ""]
    assert [one["doubt"] for one in cells] == [None, None, None, "unverified", None]
    assert (cells[1]["number"], cells[4]["outcome"]) == (1250, "not_found")
    assert [LEASE[one["start"] : one["end"]] for one in cells[:2]] == [
        "This lease was signed by Anna Berg on 3 May 2024.", "The rent is EUR 1,250.00 a month.",
    ]  # fmt: skip
    sent = client.get(f"/api/grids/{grid}/cells/{document}/2").json
    assert json.loads(sent["answer"]) == {"value": 1250, "passage": 1}
    schema = sent["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["value"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert (schema["required"], schema["additionalProperties"]) == (["value", "passage"], False)
    [body] = [one.body for one in stub.requests if one.body["messages"] == sent["messages"]]
    assert body["response_format"] == sent["response_format"]


@pytest.mark.parametrize(
    ("value", "passage", "doubt"), sample([(9999, 1, "unverified"), (1250, None, "not_cited"), ("1250", 1, None)])
)
def test_an_answer_in_json_is_checked_as_any_other(
    client: FlaskClient, stub: StubModel, value: object, passage: int | None, doubt: str | None
) -> None:
    upload(client, LEASE, "lease.txt")
    answer_with(stub, {"rent": json.dumps({"value": value, "passage": passage})})
    [fee] = results(client, start(client, {"name": "Leases", "columns": [FEE]}))
    assert (fee["outcome"], fee["doubt"]) == ("value", doubt)


@pytest.mark.long
def test_an_endpoint_that_refuses_a_schema_is_asked_without_it_from_then_on(
    client: FlaskClient, stub: StubModel
) -> None:
    document = upload(client, LEASE, "lease.txt")["document_id"]
    upload(client, f"{LEASE} Two.", "two.txt")

    def reply(seen: Seen) -> Reply:
        assert ("write: not found" in seen.messages[0]["content"]) is ("response_format" not in seen.body)
        return Reply(status=400) if "response_format" in seen.body else Reply("Anna Berg [1]")

    stub.next_reply = reply
    grid = start(client, {"name": "Leases", "columns": [SIGNED], "cells_at_once": 1})
    assert [one["value"] for one in results(client, grid)] == ["Anna Berg"] * 2
    assert ["response_format" in one.body for one in stub.requests] == [True, False, False]
    assert client.get(f"/api/grids/{grid}/cells/{document}/1").json["response_format"] is None


@pytest.mark.parametrize(
    ("answer", "outcome", "doubt"),
    [
        ("not found", "not_found", None),
        ("Not found.", "not_found", None),
        ("Nicht gefunden", "not_found", None),
        ("EUR 9,999.00 [1]", "value", "unverified"),
        ("EUR 1,250.00", "value", "not_cited"),
        ("a lot [1]", "value", "wrong_type"),
        ("contradiction: EUR 1,250.00 [1]; EUR 1,300.00 [1]", "disagreement", None),
    ],
)
def test_what_a_passage_does_not_support_is_marked(
    client: FlaskClient, stub: StubModel, answer: str, outcome: str, doubt: str | None
) -> None:
    upload(client, LEASE, "lease.txt")
    answer_with(stub, {"rent": answer})
    [fee] = results(client, grid := start(client, {"name": "Leases", "columns": [FEE]}))
    assert (fee["outcome"], fee["doubt"]) == (outcome, doubt)
    marked = rows(client, grid, "?cells=doubtful")
    assert bool(marked) is (outcome != "not_found")


@pytest.mark.long
def test_what_a_document_states_differently_is_told(client: FlaskClient, stub: StubModel) -> None:
    filler = "\n\n".join(f"Paragraph {n} is about something else, such as the garden and its gate." for n in range(60))
    upload(client, f"The notice period is 30 days.\n\n{filler}\n\nThe notice period is 60 days.", "contract.txt")
    answer_with(stub, {"notice": "30 days [1]"})
    columns = [{"question": "How long is the notice period?"}]
    [period] = results(client, start(client, {"name": "Periods", "columns": columns}))
    assert (period["value"], period["doubt"]) == ("30 days", "other_values")


def test_a_failed_cell_says_why_and_the_table_stops_after_many(client: FlaskClient, stub: StubModel) -> None:
    for number in range(8):
        upload(client, f"{LEASE} House {number}.", f"{number}.txt")
    stub.default = Reply(status=400)
    grid = start(client, BEGUN | {"cells_at_once": 1})
    cells = rest(client, grid)
    assert cells == {"failed": 5, "empty": 11}
    assert "scripted" in state(client, grid)["reason"]
    assert len(stub.requests) == 10  # Each also without a schema, which is not what was refused.
    assert {cell["state"] for row in rows(client, grid, "?cells=failed") for cell in row["cells"]} >= {"failed"}
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    assert client.post(f"/api/grids/{grid}/start", json={}).json["reason"] is None
    assert rest(client, grid) == {"done": 16}
    refused = client.post(f"/api/grids/{grid}/start", json={})
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "NothingToAsk")


@pytest.mark.long
def test_documents_in_the_trash_count_as_no_failures(client: FlaskClient, stub: StubModel) -> None:
    ids = [upload(client, f"{LEASE} House {number}.", f"{number}.txt")["document_id"] for number in range(9)]
    gate = threading.Event()
    answer_with(stub, {"signed": "Anna Berg [1]"}, gate=gate)
    grid = start(client, {"name": "Leases", "columns": [SIGNED], "cells_at_once": 1})
    until(lambda: len(stub.requests) == 1)
    client.delete(f"/api/documents/{ids[1]}")
    for one in ids[2:8]:
        post(client, f"/documents/{one}/delete")
    gate.set()
    assert rest(client, grid) == {"done": 2}
    assert state(client, grid)["reason"] is None
    assert post(client, "/documents/restore", document_ids=ids[2:8])[0] == 303
    assert state(client, grid)["cells"] == {"done": 2, "empty": 6}


@pytest.mark.long
def test_two_tables_of_a_person_share_the_pace(
    app: Flask, services: Services, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with quick_passwords():
        add_person(services, "Ann", "admin")
        client = client_of(app, "Ann")
    for number in range(3):
        upload(client, f"{LEASE} House {number}.", f"{number}.txt")
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "1,250.00 EUR [1]"})
    monkeypatch.setattr(filling, "FREE_SHARE", 0.79)  # Six of 30 questions a minute are left.
    both = [start(client, BEGUN | {"cells_at_once": 1}) for _ in range(2)]
    until(lambda: sum(state(client, one)["cells"].get("done", 0) for one in both) == 6)
    assert not until_more(stub, 6)


@pytest.mark.long
def test_whatever_is_marked_is_to_be_checked(client: FlaskClient, services: Services, stub: StubModel) -> None:
    ids = [upload(client, f"{LEASE} House {n}.", f"{n}.txt")["document_id"] for n in range(3)]
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    grid = start(client)
    rest(client, grid)
    assert rows(client, grid, "?cells=doubtful") == []
    assert state(client, grid)["outdated"] == 0
    assert "Renew" not in client.get(f"/tables/{grid}").text
    with services.database.write() as connection:
        disagrees = rows(client, grid)[1]["cells"][1]["result"] | {"outcome": "disagreement"}
        of_second = update(grid_cells).where(grid_cells.c.document_id == ids[1], grid_cells.c.column_id == 2)
        connection.execute(of_second.values(result=disagrees))
    upload(client, f"{LEASE} Anew.", "0.txt", replaces=str(ids[0]))
    until(lambda: state(client, grid)["outdated"] == 2)
    assert [row["document"] for row in rows(client, grid, "?cells=doubtful")] == ["0.txt", "1.txt"]
    assert "Renew" in client.get(f"/tables/{grid}").text


def test_a_budget_is_kept_with_several_at_once(client: FlaskClient, stub: StubModel) -> None:
    for number in range(6):
        upload(client, f"{LEASE} House {number}.", f"{number}.txt")
    usage = {"prompt_tokens": 1900, "completion_tokens": 100}
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "1,250.00 EUR [1]"}, usage=usage)
    small = start(client, BEGUN | {"max_tokens": 100})
    assert rest(client, small) == {"empty": 12}
    assert len(stub.requests) == 0
    grid = start(client, BEGUN | {"max_tokens": 9000, "cells_at_once": 3})
    assert state(client, grid)["estimate"]["requests"] == 12
    assert rest(client, grid) == {"done": 4, "empty": 8}
    after = state(client, grid)
    assert "budget of 9,000." in after["reason"]
    assert after["used_tokens"] == 8000
    # However long an answer gets, it takes no more than what is left.
    assert all(0 < one.body["max_tokens"] <= 9000 - 2000 * n for n, one in enumerate(stub.requests))
    assert stub.requests[0].body["max_tokens"] == MAX_CELL_TOKENS
    assert after["estimate"]["tokens"] == 16000
    again = start(client, BEGUN | {"max_tokens": 3000, "cells_at_once": 8})
    rest(client, again)
    assert state(client, again)["used_tokens"] == 2000


@pytest.mark.long
@pytest.mark.parametrize("accounts", [False, True])
def test_a_personal_pace_is_kept_and_estimated_with_accounts_alone(
    app: Flask, services: Services, stub: StubModel, monkeypatch: pytest.MonkeyPatch, accounts: bool
) -> None:
    if accounts:
        with quick_passwords():
            add_person(services, "Ann", "admin")
            client = client_of(app, "Ann")
    else:
        client = app.test_client()
    for number in range(6):
        upload(client, f"{LEASE} House {number}.", f"{number}.txt")
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "1,250.00 EUR [1]"})
    monkeypatch.setattr(filling, "FREE_SHARE", 0.79)  # Six of 30 questions a minute are left.
    begun = time.monotonic()
    grid = start(client, BEGUN | {"cells_at_once": 1})
    if not accounts:
        assert rest(client, grid) == {"done": 12}
        assert time.monotonic() - begun < 55  # With the pace, the seventh waits a minute.
        return
    until(lambda: state(client, grid)["cells"].get("done") == 6)
    assert not until_more(stub, 6)
    assert state(client, grid)["estimate"]["seconds"] == 60
    assert client.post(f"/api/grids/{grid}/stop", json={}).json["cells"] == {"done": 6, "empty": 6}


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(("method", "path"), [("POST", "/stop"), ("DELETE", "")])
def test_a_stopped_or_trashed_table_asks_nothing_more(
    client: FlaskClient, services: Services, stub: StubModel, method: str, path: str, killed: bool
) -> None:
    for number in range(3):
        upload(client, f"{LEASE} House {number}.", f"{number}.txt")
    gate = threading.Event()

    def refuse(_seen: Seen) -> Reply:
        gate.wait(60)
        return Reply(status=429, headers={"retry-after": "0"})

    stub.next_reply = refuse
    grid = start(client)
    until(lambda: len(stub.requests) == 4)
    client.open(f"/api/grids/{grid}{path}", method=method, json={})
    if killed:
        with services.database.write() as connection:
            connection.execute(update(grid_cells).where(grid_cells.c.state == "running").values(worker="dead"))
    else:
        gate.set()

    def states() -> set[str]:
        with services.database.read() as connection:
            return set(connection.execute(select(grid_cells.c.state)).scalars())

    until(lambda: states() == {"empty"})
    asked = len(stub.requests)
    assert not until_more(stub, asked)
    gate.set()
    if path:
        answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
        client.post(f"/api/grids/{grid}/start", json={})
        assert rest(client, grid) == {"done": 6}


@pytest.mark.long
def test_start_renews_what_is_outdated_or_was_quoted(client: FlaskClient, services: Services, stub: StubModel) -> None:
    ids = [upload(client, f"{LEASE} House {n}.", f"{n}.txt")["document_id"] for n in range(3)]
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    grid = start(client)
    rest(client, grid)
    upload(client, f"{LEASE} Anew.", "0.txt", replaces=str(ids[0]))
    until(lambda: rows(client, grid)[0]["cells"][0]["outdated"])
    with services.database.write() as connection:
        quoted = update(grid_cells).where(grid_cells.c.document_id == ids[1], grid_cells.c.column_id == 2)
        result = rows(client, grid)[1]["cells"][1]["result"]
        connection.execute(quoted.values(result=result | {"model": "quotes"}))
    assert client.get(f"/tables/{grid}").text.count("/start") == 1
    client.post(f"/api/grids/{grid}/start", json={})
    assert rest(client, grid) == {"done": 6}
    assert len(stub.requests) == 9
    assert not any(cell["outdated"] for row in rows(client, grid) for cell in row["cells"])
    assert client.post(f"/api/grids/{grid}/start", json={}).status_code == 409


def until_more(stub: StubModel, count: int) -> bool:
    """Return whether more requests came within a moment."""
    threading.Event().wait(0.3)
    return len(stub.requests) > count


@pytest.mark.long
def test_people_keep_the_last_answers(client: FlaskClient, services: Services, stub: StubModel) -> None:
    for number in range(12):
        upload(client, f"{LEASE} House {number}.", f"{number}.txt")
    gate = threading.Event()
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "1,250.00 EUR [1]", "Why": "So."}, gate=gate)
    grid = start(client, BEGUN | {"cells_at_once": 20})
    until(lambda: state(client, grid)["cells"].get("running") == 6)
    until(lambda: services.assistant.running == (6, 8))
    gate.set()
    assert ask(client, "Why?")["status"] == "completed"
    assert rest(client, grid) == {"done": 24}


def test_a_cell_is_asked_again_only_if_somebody_wants_it(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, LEASE, "lease.txt")["document_id"]
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    grid = start(client)
    rest(client, grid)
    again = f"/api/grids/{grid}/cells/{document}/2/again"
    answer_with(stub, {"rent": "not found"})
    assert client.post(again, json={}).status_code == 200
    assert [one["outcome"] for one in results(client, grid)] == ["value", "not_found"]
    assert len(stub.requests) == 3
    columns = [{"id": 1, **SIGNED, "name": "By"}, {"id": 2, **FEE, "question": "What is the deposit?"}]
    changed = client.patch(f"/api/grids/{grid}", json={"columns": columns}).json
    assert [one["id"] for one in changed["columns"]] == [1, 3]
    assert changed["cells"] == {"done": 1, "empty": 1}
    assert client.post(again, json={}).status_code == 404


def test_new_documents_fill_in_by_themselves_and_changed_ones_are_told(client: FlaskClient, stub: StubModel) -> None:
    first = upload(client, LEASE, "lease.txt", tags="lease")["document_id"]
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    grid = start(client, BEGUN | {"tags": ["lease"], "watch": True})
    upload(client, f"{LEASE} Two.", "other.txt")
    upload(client, f"{LEASE} Three.", "three.txt", tags="lease")
    until(lambda: state(client, grid)["cells"] == {"done": 4})
    assert [row["document"] for row in rows(client, grid)] == ["lease.txt", "three.txt"]
    source = re.compile(rf'href="(/documents/{first}[^"]*)">Open the source')
    assert "start=" in source.findall(client.get(f"/tables/{grid}", headers=PAGE).text)[0]
    upload(client, f"{LEASE} Anew.", "lease.txt", replaces=str(first))
    until(lambda: rows(client, grid)[0]["cells"][0]["outdated"])
    assert source.findall(client.get(f"/tables/{grid}", headers=PAGE).text) == [f"/documents/{first}"] * 2
    client.delete(f"/api/documents/{first}")
    assert [row["document"] for row in rows(client, grid)] == ["three.txt"]


def test_a_table_that_watches_asks_nothing_before_it_is_started(client: FlaskClient, stub: StubModel) -> None:
    first = upload(client, LEASE, "lease.txt")["document_id"]
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]", "rents": "Anna Berg [1]"})
    made = client.post("/api/grids", json=BEGUN | {"watch": True}).json
    assert (made["cells"], made["estimate"]["requests"]) == ({"empty": 2}, 2)
    upload(client, f"{LEASE} Two.", "two.txt")
    until(lambda: state(client, made["grid_id"])["documents"] == 2)
    client.post(f"/api/grids/{made['grid_id']}/cells/{first}/1/again", json={})
    assert rest(client, made["grid_id"]) == {"done": 1, "empty": 3}
    assert client.patch(f"/api/grids/{made['grid_id']}", json={"watch": True}).json["cells"] == {"done": 1, "empty": 3}
    client.post(f"/api/grids/{made['grid_id']}/start", json={})
    upload(client, f"{LEASE} Three.", "three.txt")
    until(lambda: state(client, made["grid_id"])["cells"] == {"done": 6})
    columns = [*made["columns"], {"question": "Who rents?"}]
    changed = client.patch(f"/api/grids/{made['grid_id']}", json={"columns": columns}).json
    assert (changed["watch"], changed["cells"]) == (True, {"done": 6, "empty": 3})


def test_a_table_without_documents_can_be_started_to_watch(client: FlaskClient, stub: StubModel) -> None:
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    grid = start(client, BEGUN | {"watch": True})
    upload(client, LEASE, "lease.txt")
    until(lambda: state(client, grid)["cells"] == {"done": 2})


@pytest.mark.long
def test_new_documents_are_not_looked_for_after_each_cell(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "POLL_INTERVAL_SECONDS", 600)
    for number in range(4):
        upload(client, f"{LEASE} House {number}.", f"{number}.txt")
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    added: list[str] = []
    with listening(Engine, "before_cursor_execute", lambda *event: added.append(event[2])):
        assert rest(client, start(client, BEGUN | {"watch": True})) == {"done": 8}
    # As it is made, as it starts, and at most once by itself.
    assert len([one for one in added if one.startswith("INSERT INTO grid_cells")]) <= 3


def test_looking_for_new_documents_leaves_time_for_others(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[float] = []

    def fit(*_args: object) -> None:
        times.append(time.monotonic())
        time.sleep(0.02)

    monkeypatch.setattr(GridStore, "fit", fit)
    monkeypatch.setattr(filling, "MAX_POLL_SHARE", 0.1)
    for _ in range(3):
        start(client, BEGUN | {"watch": True})
    until(lambda: len(times) >= 10)
    pauses = sorted(later - earlier for earlier, later in pairwise(times))
    assert pauses[-2] >= 0.5, "after each look at three tables"


def test_rows_are_sorted_and_found(client: FlaskClient, stub: StubModel) -> None:
    for rent in ("900", "1,250", "80"):
        upload(client, f"The rent is EUR {rent} a month. Signed by P{rent[0]}.", f"{rent[0]}.txt")

    def reply(seen: Seen) -> Reply:
        passages, _, question = seen.messages[-1]["content"].rpartition("</passages>")
        pattern = r"EUR [\d,]+" if "rent" in question else r"P\d"
        return Reply(
            "not found" if "80" in passages and "rent" in question else f"{re.findall(pattern, passages)[0]} [1]"
        )

    stub.next_reply = reply
    grid = start(client)
    rest(client, grid)
    for query, expected in {
        "?sort=-name": "981",
        "?sort=2": "918",
        "?sort=-2": "198",
        "?sort=-1": "981",
        "?q=P9": "9",
        "?q=8.txt": "8",
        "?cells=not_found": "8",
        "?limit=1&offset=1": "8",
    }.items():
        assert "".join(row["document"][0] for row in rows(client, grid, query)) == expected, query
    assert client.get(f"/api/grids/{grid}/rows?sort=9").status_code == 422


def test_files_have_links_and_no_formulas(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "=SUM(A1) was signed by @eve. The rent is EUR 7.", "=1+1.txt")
    answer_with(stub, {"signed": "=SUM(A1) [1]", "rent": "EUR 7 [1]"})
    grid = start(client)
    rest(client, grid)
    text = client.get(f"/api/grids/{grid}/export").data.decode("utf-8-sig")
    heads, line = csv.reader(io.StringIO(text))
    assert heads[:2] == ["Document", "Signed by"]
    assert line[:2] == ["'=1+1.txt", "'=SUM(A1)"]
    assert "/documents/" in line[3]
    response = client.get(f"/api/grids/{grid}/export?format=xlsx")
    with zipfile.ZipFile(io.BytesIO(response.data)) as packed:
        sheet = packed.read("xl/worksheets/sheet1.xml").decode()
        links = packed.read("xl/worksheets/_rels/sheet1.xml.rels").decode()
    assert "<f>" not in sheet
    assert "<v>7</v>" in sheet
    assert links.count("/documents/") == 3
    assert "start=" in links


def test_the_trash_restores_and_erases(client: FlaskClient, services: Services, stub: StubModel) -> None:
    upload(client, LEASE, "lease.txt")
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    grid = start(client)
    rest(client, grid)
    assert client.post(f"/api/grids/{grid}/erase", json={}).status_code == 404
    assert client.delete(f"/api/grids/{grid}").status_code == 204
    assert client.get(f"/api/grids/{grid}").status_code == 404
    assert "Leases" in client.get("/deleted").text
    assert client.post(f"/api/grids/{grid}/restore", json={}).json["cells"] == {"done": 2}
    client.delete(f"/api/grids/{grid}")
    assert [one["name"] for one in client.get("/api/grids?deleted=1").json["grids"]] == ["Leases"]
    assert client.get("/api/grids").json["grids"] == []
    assert client.post(f"/api/grids/{grid}/erase", json={}).status_code == 204
    with services.database.read() as connection:
        assert connection.execute(grid_cells.select()).all() == []


def test_a_shared_table_shows_what_its_reader_may_read(app: Flask, services: Services, stub: StubModel) -> None:
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    with quick_passwords():
        add_person(services, "Ann", "admin")
        add_person(services, "Ben")
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    upload(ann, LEASE, "lease.txt")
    library = ann.post("/api/libraries", json={"name": "Shared"}).json["library_id"]
    upload(ann, f"{LEASE} Two.", "two.txt", library_id=str(library))
    ann.put(f"/api/libraries/{library}/shares", json={"person": "Ben", "access": "read"})
    grid = start(ann)
    assert rest(ann, grid) == {"done": 4}
    assert ben.get(f"/api/grids/{grid}").status_code == 404
    ann.put(f"/api/grids/{grid}/shares", json={"person": "Ben", "access": "read"})
    assert [row["document"] for row in rows(ben, grid)] == ["two.txt"]
    seen = ben.get(f"/api/grids/{grid}").json
    assert (seen["documents"], seen["cells"], seen["used_tokens"]) == (1, {"done": 2}, 0)
    assert "lease.txt" not in ben.get(f"/api/grids/{grid}/export").text
    for method, path in (("POST", "/stop"), ("PATCH", ""), ("DELETE", "")):
        assert ben.open(f"/api/grids/{grid}{path}", method=method, json={}).status_code == 403
    assert ben.get(f"/tables/{grid}").status_code == 200
    ann.put(f"/api/grids/{grid}/shares", json={"person": "Ben", "access": "write"})
    columns = seen["columns"]
    for changed in (columns[:1], [columns[0] | {"question": "Why?"}, columns[1]]):
        assert ben.patch(f"/api/grids/{grid}", json={"columns": changed}).status_code == 403
    more = [*columns, {"question": "Who rents?"}]
    assert ben.patch(f"/api/grids/{grid}", json={"columns": more}).json["cells"] == {"done": 2, "empty": 1}
    assert state(ann, grid)["cells"] == {"done": 4, "empty": 2}
    assert "readonly" in ben.get(f"/tables/{grid}").text


def test_only_the_owner_sees_what_the_model_answered_to_a_failed_request(
    app: Flask, services: Services, stub: StubModel
) -> None:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name, "admin")
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    library = ann.get("/api/libraries").json["libraries"][0]["library_id"]
    ann.patch(f"/api/libraries/{library}", json={"everyone": "read"})
    document, *_ = [upload(ann, f"{LEASE} {number}.", f"{number}.txt")["document_id"] for number in range(5)]
    stub.default = Reply(status=404, body=b'{"error": {"message": "no such model, account acct_SECRET77"}}')
    grid = start(ann, BEGUN | {"cells_at_once": 1})
    rest(ann, grid)
    ann.put(f"/api/grids/{grid}/shares", json={"person": "Ben", "access": "write"})
    one = f"/api/grids/{grid}"
    receipt = f"{one}/cells/{document}/1"
    paths = ["/api/grids", one, f"{one}/rows", f"/tables/{grid}", "/tables", f"{one}/export", receipt]
    for client, sees in ((ann, True), (ben, False)):
        shown = [client.get(path, headers=PAGE if path.startswith("/tables") else {}).text for path in paths]
        leaks = ["acct_SECRET77" in text or stub.url in text for text in shown]
        assert leaks == [*[sees] * 4, False, False, False]
    assert state(ben, grid)["reason"]
    assert {cell["error"] is None for row in rows(ben, grid) for cell in row["cells"]} == {True, False}
    assert (ann.get(receipt).status_code, ben.get(receipt).status_code) == (200, 403)


def test_who_may_write_a_table_reads_that_its_budget_is_used(app: Flask, services: Services, stub: StubModel) -> None:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name, "admin")
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    upload(ann, LEASE, "lease.txt")
    grid = start(ann, BEGUN | {"max_tokens": 100, "everyone": "write"})
    rest(ann, grid)
    assert "100" in state(ben, grid)["reason"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "A", "columns": []}, "1 to 20 columns"),
        ({"name": "A", "columns": [{"question": " "}]}, "columns"),
        ({"name": "A", "columns": [{"question": "Why?", "type": "colour"}]}, "columns"),
        ({"name": "A", "columns": [FEE] * 21}, "1 to 20 columns"),
        ({"name": "A", "columns": [FEE], "cells_at_once": 21}, "1 to 20"),
        ({"name": "A", "columns": [FEE], "document_ids": [99]}, "99"),
        ({"name": "A", "columns": [FEE], "project_id": 99}, "99"),
    ],
)
def test_what_cannot_be_a_table_is_refused(empty: FlaskClient, body: dict[str, Any], words: str) -> None:
    response = empty.post("/api/grids", json=body)
    assert response.status_code in (404, 422)
    assert words in response.json["error"]["message"]


def of_columns(*columns: tuple[str, str]) -> dict[str, list[str]]:
    """Return columns as the fields of a form, by question and type."""
    questions, types = zip(*columns, strict=True)
    return {"column_id": [""] * len(columns), "column_name": ["Head"] * len(columns)} | {
        "column_question": list(questions), "column_type": list(types)
    }  # fmt: skip


def test_a_refused_form_comes_back_as_it_was_filled(client: FlaskClient) -> None:
    document = str(upload(client, LEASE, "lease.txt")["document_id"])
    fields: dict[str, Any] = of_columns(("Who signed?", "text"), ("", "text"), ("When?", "date"))
    status, page = post(client, "/tables", name="Leases of 2024", tags="no such tag", **fields)
    assert (status, page.count('role="alert"')) == (422, 1)
    for part in ('value="Leases of 2024"', 'value="no such tag"', 'value="Who signed?"', 'value="When?"'):
        assert part in page
    assert 'value="date" selected' in page
    status, page = post(client, "/tables", name="Leases", document_ids=document, **of_columns(("", "text")))
    assert (status, page.count('role="alert"')) == (422, 1)
    assert f'name="document_ids" value="{document}"' in page
    grid = client.post("/api/grids", json=BEGUN).json["grid_id"]
    sent = {"name": "Renamed", "max_tokens": "1,500", "cells_at_once": "7", "watch": ["false", "true"]}
    status, page = post(client, f"/tables/{grid}", **sent, **fields)
    assert (status, page.count('role="alert"')) == (422, 1)
    for part in ('value="Renamed"', 'value="1,500"', 'value="7"', 'value="Who signed?"', 'value="true" checked'):
        assert part in page
    assert page.index('<details class="grid-settings" open') < page.index('role="alert"') < page.index('value="1,500"')
    assert client.get(f"/tables/{grid}", headers=PAGE).text.count('value="What is the rent in EUR?"') == 1


def fill_up(database: Database, count: int, columns: int) -> None:
    """Store a table whose cells are answered."""
    moment = now()
    document = {"media_type": "text/plain", "size_bytes": 1, "owner": "", "file": "f", "state": "ready", "chunks": 1}
    document |= {"embedded": 1, "created_at": moment, "sha256": "x", "library_id": 1}
    answered = {"outcome": "value", "value": "30 days", "quote": "The notice period is 30 days.", "start": 0, "end": 9}
    cell = {"grid_id": 1, "state": "done", "result": answered | {"model": "m", "sha256": "x"}}
    own = [{"id": n, "name": f"C{n}", "question": "Why?", "type": "text"} for n in range(1, columns + 1)]
    with database.write() as connection:
        connection.execute(insert(grids).values(name="Much", columns=own, created_at=moment))
        named = [
            document | {"id": n, "name": f"{n}.txt", "name_key": f"{n:04}", "content_key": f"{n}"}
            for n in range(1, count + 1)
        ]
        connection.execute(insert(documents), named)
        pairs = [{"document_id": one, "column_id": n} for one in range(1, count + 1) for n in range(1, columns + 1)]
        connection.execute(insert(grid_cells), [cell | pair for pair in pairs])


@pytest.mark.parametrize(
    "path", sample(["/tables", "/tables/1", "/api/grids", "/api/grids/1/rows?limit=200&sort=-2&q=30"], 2)
)
def test_the_statements_for_a_table_do_not_grow_with_it(
    app: Flask, client: FlaskClient, services: Services, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def statements() -> list[str]:
        seen: list[str] = []
        here = threading.get_ident()

        def note(_c: object, _x: object, statement: str, *_: object) -> None:
            # Whether there are accounts is looked up now and then.
            if threading.get_ident() == here and statement != "BEGIN" and "SELECT people.id" not in statement:
                seen.append(re.sub(r"\?(, \?)+", "?", statement))

        client.get(path)
        with listening(services.database.engine.__class__, "before_cursor_execute", note):
            assert client.get(path).status_code == 200
        return sorted(seen)

    monkeypatch.setattr(filling, "POLL_INTERVAL_SECONDS", 600)
    fill_up(services.database, 3, 2)
    few = statements()
    with services.database.write() as connection:
        for table in (grid_cells, grids, documents):
            connection.execute(table.delete())
        connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'grids'")
    fill_up(services.database, 499, 20)  # For a full one, what is left out is counted, too.
    with services.database.write() as connection:
        more = [{"name": f"Table {n}", "columns": [], "created_at": datetime.now(UTC)} for n in range(20)]
        connection.execute(insert(grids), more)
    assert statements() == few


@pytest.mark.long
def test_every_question_is_asked_as_the_body_says(client: FlaskClient, stub: StubModel) -> None:
    upload(client, LEASE, "lease.txt")
    upload(client, "Geese swim.", "geese.txt")
    answer_with(stub, {"signed": "not found", "rent": "not found"})
    rest(client, start(client))
    asked = [json.dumps(one.messages) for one in stub.requests]
    assert len(asked) == 4
    # Each has the passages of one document alone.
    assert not any("lease.txt" in one and "geese.txt" in one for one in asked)
    assert all("both are null" in one for one in asked)


@pytest.mark.long
def test_a_cell_whose_passages_did_not_fit_is_not_a_models_answer(
    client: FlaskClient, services: Services, stub: StubModel
) -> None:
    upload(client, " ".join(f"The rent of flat {n} is EUR {n},250.00 a month." for n in range(1, 40)), "rents.txt")
    answer_with(stub, {"rent": "not found"})
    services.settings.change({"model_context_tokens": 600}, services.settings.stamp())
    grid = start(client, BEGUN | {"columns": [FEE]})
    assert rest(client, grid) == {"failed": 1}
    (cell,) = rows(client, grid)[0]["cells"]
    assert cell["error"] == "The passages that were found did not fit into the request, so the model saw none of them."


@pytest.mark.long
def test_an_estimate_is_of_the_documents_real_sizes_then_of_what_cells_took(
    client: FlaskClient, services: Services, stub: StubModel
) -> None:
    document = upload(client, LEASE, "lease.txt")["document_id"]
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"}, usage={"prompt_tokens": 380})
    grid = client.post("/api/grids", json=BEGUN).json["grid_id"]
    short = state(client, grid)["estimate"]["tokens"]
    assert 600 <= short <= 1000  # Two requests for a document of thirty tokens.
    assert client.patch(f"/api/grids/{grid}", json={"max_tokens": 1200}).status_code == 200
    client.post(f"/api/grids/{grid}/start", json={})
    assert rest(client, grid) == {"done": 2}
    for _ in range(2):  # What was replaced counts as used, but not for what the next takes.
        client.post(f"/api/grids/{grid}/cells/{document}/1/again", json={})
        rest(client, grid)
    client.patch(f"/api/grids/{grid}", json={"max_tokens": None})
    more = upload(client, f"{LEASE} Two.", "two.txt")["document_id"]
    client.post(f"/api/grids/{grid}/start", json={})
    client.post(f"/api/grids/{grid}/stop", json={})
    rest_of = state(client, grid)["estimate"]
    assert rest_of["tokens"] == 380 * rest_of["requests"]
    rest(client, grid)
    with services.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == more).values(sha256="changed"))
    renews = state(client, grid)
    if renews["cells"] == {"done": 4}:
        assert renews["estimate"] == {
            "cells": 2,
            "requests": 2,
            "tokens": 760,
            "seconds": renews["estimate"]["seconds"],
        }
        assert "Renewing takes 2 requests to the model" in client.get(f"/tables/{grid}").text


@pytest.mark.long
def test_long_documents_are_estimated_by_their_passages(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "\n\n".join(f"Paragraph {n} is about the garden and its gate." * 9 for n in range(60)), "long.txt")
    grid = client.post("/api/grids", json=BEGUN | {"columns": [FEE]}).json["grid_id"]
    assert 1500 <= state(client, grid)["estimate"]["tokens"] <= 2000


def test_spreadsheets_get_real_dates_and_numbers_and_a_heading_for_each_column(
    client: FlaskClient, stub: StubModel
) -> None:
    upload(
        client,
        "Signed on 3 May 2024. The fee is EUR 2.5 million. It ends in June 2025. Its width is 40 m.",
        "lease.txt",
    )
    answer_with(
        stub, {"signed": "2024-05-03 [1]", "fee": "EUR 2.5 million [1]", "end": "2025-06 [1]", "width": "40 m [1]"}
    )
    columns = [
        {"question": "When was it signed?", "type": "date"},
        {"question": "What is the fee?", "name": "Fee", "type": "number"},
        {"question": "When does it end?", "name": "End", "type": "date"},
        {"question": "What is its width?", "name": "Width", "type": "number"},
    ]
    rest(client, grid := start(client, {"name": "Leases", "columns": columns}))
    written = client.get(f"/api/grids/{grid}/export?format=xlsx").data
    with zipfile.ZipFile(io.BytesIO(written)) as packed:
        sheet, styles = (packed.read(f"xl/{name}.xml").decode() for name in ("worksheets/sheet1", "styles"))
    days = (date(2024, 5, 3) - date(1899, 12, 30)).days
    assert re.findall(r'<c r="[BCD]2" s="\d+"( t="s")?><v>(\d+)', sheet)[:2] == [("", f"{days}"), ("", "2500000")]
    assert re.search(r'<c r="D2" s="\d+" t="s">', sheet)
    assert re.search(r'<c r="E2" s="\d+"><v>40</v>', sheet)
    assert all(f'"General&quot; {unit}&quot;"' in styles for unit in ("EUR", "m"))
    assert "yyyy-mm-dd" in styles
    assert "million" not in styles
    heads, _ = csv.reader(io.StringIO(client.get(f"/api/grids/{grid}/export").data.decode("utf-8-sig")))
    assert all(heads)
    assert len(set(heads)) == len(heads)


def test_an_answer_in_json_of_another_type_is_no_json_in_the_cell(client: FlaskClient, stub: StubModel) -> None:
    upload(client, LEASE, "lease.txt")
    answer_with(stub, {"rent": '{"value": "not much", "passage": 1}', "signed": '{"value": 7, "passage": null}'})
    signed, fee = results(client, start(client))
    assert (fee["value"], fee["doubt"]) == ("not much", "wrong_type")
    assert (signed["value"], signed["doubt"]) == ("7", "not_cited")


@pytest.mark.long
def test_a_refused_form_speaks_of_its_labels(client: FlaskClient) -> None:
    upload(client, LEASE, "lease.txt")
    grid = client.post("/api/grids", json=BEGUN).json["grid_id"]
    valid = {"name": "Leases", "max_tokens": "", "cells_at_once": "4"} | of_columns(("Who signed?", "text"))
    for field, value in {"max_tokens": "many", "cells_at_once": "99", "name": " ", "column_type": ["colour"]}.items():
        status, page = post(client, f"/tables/{grid}", **(valid | {field: value}))
        [alert] = re.findall(r'role="alert">([^<]*)<', page)
        assert status == 422
        assert not re.search(r"max_tokens|cells_at_once|null|columns\[|text of", alert), alert


@pytest.mark.long
def test_a_deleted_table_can_be_restored_where_it_was(client: FlaskClient) -> None:
    grid = client.post("/api/grids", json=BEGUN).json["grid_id"]
    response = client.post(f"/tables/{grid}/delete", headers=PAGE)
    page = client.get(response.headers["Location"]).text
    assert "“<bdi>Leases</bdi>” deleted." in page
    assert f'action="/tables/{grid}/restore"' in page
    assert post(client, f"/tables/{grid}/restore")[0] == 303
    assert "deleted." not in client.get(response.headers["Location"]).text


@pytest.mark.long
@pytest.mark.parametrize("status", [401, 429])
def test_a_request_that_failed_used_no_tokens(client: FlaskClient, stub: StubModel, status: int) -> None:
    upload(client, LEASE, "lease.txt")
    stub.default = Reply(status=status, headers={"retry-after": "0"})
    grid = start(client)
    assert "failed" in rest(client, grid)
    assert state(client, grid)["used_tokens"] == 0


@pytest.mark.long
def test_new_documents_are_counted_and_asked_on_request(client: FlaskClient, stub: StubModel) -> None:
    upload(client, LEASE, "lease.txt")
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    grid = start(client)
    rest(client, grid)
    assert "Add and ask" not in client.get(f"/tables/{grid}").text
    upload(client, f"{LEASE} Two.", "two.txt")
    assert "1 new document is not in this table yet." in client.get(f"/tables/{grid}").text
    assert post(client, f"/tables/{grid}/start")[0] == 303
    assert rest(client, grid) == {"done": 4}
    assert "Add and ask" not in client.get(f"/tables/{grid}").text


def test_the_notice_of_a_budget_goes_once_it_is_raised(client: FlaskClient, stub: StubModel) -> None:
    upload(client, LEASE, "lease.txt")
    grid = start(client, BEGUN | {"max_tokens": 100})
    rest(client, grid)
    assert client.patch(f"/api/grids/{grid}", json={"name": "Same"}).json["reason"]
    assert client.patch(f"/api/grids/{grid}", json={"max_tokens": 200}).json["reason"] is None


@pytest.mark.long
def test_a_command_without_a_server_writes_no_links(
    client: FlaskClient, services: Services, stub: StubModel, tmp_path: Path
) -> None:
    upload(client, LEASE, "lease.txt")
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 9.00 [1]"})
    grid = start(client)
    rest(client, grid)
    for kind in ("csv", "xlsx"):
        api_here(services).download(f"/api/grids/{grid}/export", file := tmp_path / f"t.{kind}", format=kind)
        written = file.read_bytes()
        if kind == "xlsx":
            with zipfile.ZipFile(file) as packed:
                written = b"".join(map(packed.read, (one for one in packed.namelist() if "sheet" in one)))
                assert b"not confirmed automatically" in packed.read("xl/comments1.xml")
        assert b"/documents/" not in written


def test_the_nearest_sentence_is_shown_where_nothing_was_found(client: FlaskClient, services: Services) -> None:
    document = upload(client, LEASE, "lease.txt")["document_id"]
    grid = client.post("/api/grids", json=BEGUN).json["grid_id"]
    result = {"outcome": "not_found", "quote": "The rent is EUR 1,250.00 a month.", "start": 0, "end": 9}
    with services.database.write() as connection:
        cell = update(grid_cells).where(grid_cells.c.document_id == document, grid_cells.c.column_id == 1)
        connection.execute(cell.values(state="done", result=result | {"model": "quotes"}))
    page = client.get(f"/tables/{grid}", headers=PAGE).text
    assert "The nearest text: The rent is EUR 1,250.00 a month.</small>" in page
    _, line = csv.reader(io.StringIO(client.get(f"/api/grids/{grid}/export").data.decode("utf-8-sig")))
    assert line[1:3] == ["not found", "The nearest text: The rent is EUR 1,250.00 a month."]


def test_a_table_stays_sorted_and_filtered_whatever_is_done_on_its_page(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, LEASE, "lease.txt")["document_id"]
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 9.00 [1]"})
    rest(client, grid := start(client))
    page = client.get(f"/tables/{grid}?sort=-2&cells=doubtful&q=lease").text
    [action] = re.findall(rf'action="(/tables/{grid}/cells/{document}/2/again[^"]*)"', page)
    shown = client.post(action.replace("&amp;", "&"), headers=PAGE).headers["Location"]
    assert shown.partition("?")[0] == f"/tables/{grid}"
    assert {*shown.partition("?")[2].split("&")} == {"sort=-2", "cells=doubtful", "q=lease"}


def test_a_filter_without_rows_does_not_say_that_documents_are_unread(client: FlaskClient) -> None:
    upload(client, LEASE, "lease.txt")
    grid = client.post("/api/grids", json=BEGUN).json["grid_id"]
    for query in ("?q=nowhere", "?cells=failed"):
        page = client.get(f"/tables/{grid}{query}").text
        assert "No row has this." in page
        assert "once it has been read" not in page


def test_a_yes_or_no_is_shown_with_its_sentence_and_to_be_checked(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The garden is nice. Dogs may live here if the landlord agrees.", "lease.txt")
    answer_with(stub, {"dogs": "yes [1]"})
    columns = [{"question": "May dogs live here?", "type": "yes_no"}]
    rest(client, grid := start(client, {"name": "Dogs", "columns": columns}))
    assert len(rows(client, grid, "?cells=doubtful")) == 1
    assert "The nearest text: Dogs may live here if the landlord agrees." in client.get(f"/tables/{grid}").text
    text = client.get(f"/api/grids/{grid}/export").data.decode("utf-8-sig")
    assert "The nearest text: Dogs may live" in text


def test_claiming_a_cell_reads_no_more_answers_in_a_larger_table(client: FlaskClient, stub: StubModel) -> None:
    upload(client, LEASE, "lease.txt")
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    averages: list[str] = []
    grid = client.post("/api/grids", json=BEGUN | {"max_tokens": 90_000}).json["grid_id"]
    with listening(Engine, "before_cursor_execute", lambda *event: averages.append(event[2])):
        client.post(f"/api/grids/{grid}/start", json={})
        until(lambda: any("avg(" in one and "LIMIT" in one for one in averages))
    assert rest(client, grid) == {"done": 2}


def test_what_is_left_out_of_a_full_table_is_said(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        upload(client, f"{LEASE} {number}.", f"{number}.txt", tags="lease")
    whole = client.post("/api/grids", json=BEGUN).json
    assert whole["left_out"] == 0
    for module in (stored, grids_api):
        monkeypatch.setattr(module, "MAX_GRID_DOCUMENTS", 3)
    full = client.post("/api/grids", json=BEGUN | {"tags": ["lease"]}).json
    assert (full["documents"], full["left_out"]) == (3, 1)
    for path in ("/tables", f"/tables/{full['grid_id']}"):
        assert "3 of 4 documents" in client.get(path, headers=PAGE).text
    client.delete("/api/documents/4")
    assert state(client, full["grid_id"])["left_out"] == 0


def test_a_table_over_chosen_documents_begins_at_its_form(client: FlaskClient) -> None:
    document = upload(client, LEASE, "lease.txt")["document_id"]
    _, address = post(client, "/documents/selected", do="grid", document_ids=str(document))
    assert address == f"/tables?documents={document}#grid-name"
    page = client.get(address, headers=PAGE).text
    assert 'id="grid-name"' in page
    assert "lease.txt" in page[page.index('id="grid-name"') :]


def test_renewing_is_offered_for_outdated_answers_alone(
    client: FlaskClient, services: Services, stub: StubModel
) -> None:
    document = upload(client, LEASE, "lease.txt")["document_id"]
    answer_with(stub, {"signed": "Anna Berg [1]", "rent": "EUR 1,250.00 [1]"})
    grid, offer = start(client), "Renew outdated answers"
    rest(client, grid)
    assert offer not in client.get(f"/tables/{grid}", headers=PAGE).text
    with services.database.write() as connection:
        quoted = update(grid_cells).values(result={"outcome": "value", "value": "A", "model": "quotes"})
        connection.execute(quoted.where(grid_cells.c.column_id == 1))
    page = client.get(f"/tables/{grid}", headers=PAGE).text
    assert (offer in page, f'action="/tables/{grid}/start"' in page) == (False, True)
    upload(client, f"{LEASE} Anew.", "lease.txt", replaces=str(document))
    until(lambda: state(client, grid)["outdated"])
    assert offer in client.get(f"/tables/{grid}", headers=PAGE).text
