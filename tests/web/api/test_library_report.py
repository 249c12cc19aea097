"""A library reports on itself: over the API, on the page and with the command, and only what a person may see."""

import re
import threading
from base64 import b64encode
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Connection, Engine, insert, update

from rag_assistant.documents import report
from rag_assistant.extraction.formats.texts import read_csv
from rag_assistant.services import Services
from rag_assistant.storage.tables import chunks, conversations, document_texts, documents, now, turns
from tests.retrieval.test_near_copies import text_of
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.statements import listening
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, post, upload

LAMP = "The lighthouse lamp burns oil from whales."
# As of a font that doesn't name its letters.
GARBLED = (
    re.sub(r"\d", "", text_of(4))
    .translate({code: chr(122 - (code * 7) % 26) for code in range(97, 123)})
    .translate(str.maketrans("etaoinsr", "zqxjkvwy"))
)


pytestmark = pytest.mark.settings(MAX_PASSAGES="1")


def report_of(client: FlaskClient) -> Any:
    response = client.get("/api/documents/report")
    assert response.status_code == 200, response.text
    return response.json


def page_of(client: FlaskClient) -> str:
    return client.get("/documents/report", headers=PAGE).text


def age(services: Services, days: int) -> None:
    """Make all documents older, in the trash or not."""
    with services.database.write() as connection:
        connection.execute(update(documents).values(created_at=now() - timedelta(days=days)))


def test_an_empty_library_has_nothing_to_report(client: FlaskClient) -> None:
    answer = report_of(client)
    assert (answer["documents"], set(answer["counts"].values()), answer["limits"]) == (0, {0}, [])
    assert "Nothing to report." in page_of(client)


@pytest.mark.long
def test_documents_too_short_to_be_compared_are_counted(client: FlaskClient) -> None:
    for number in (30, 60):
        upload(client, f"Customers may return goods within {number} days.", f"refunds-{number}.txt")
    upload(client, text_of(1), "long.txt")
    (limit,) = report_of(client)["limits"]
    assert limit.endswith(" not compared: 2.")
    assert limit in page_of(client)


@pytest.mark.long
def test_the_same_text_in_another_format_is_named_with_the_newer_one(client: FlaskClient) -> None:
    text, changed = text_of(1), text_of(1).replace(text_of(1).split()[99], "cargo")
    upload(client, f"Date: 2 May 2023\n\n{text}", "plain-2023-05-02.txt")
    upload(client, f"<p>Date: 2 May 2023</p><p><b>{text}</b>", "page.html")
    upload(client, f"Date: 9 June 2024\n\n{changed}", "next-2024-06-09.txt")
    upload(client, text_of(2), "other.txt")
    first, second = report_of(client)["near_copies"]
    assert (first["identical"], first["newer"], {one["name"] for one in first["documents"]}) == (
        True,
        None,
        {"plain-2023-05-02.txt", "page.html"},
    )
    assert not second["identical"]
    page = page_of(client)
    assert ("Nearly the same text:" in page, "%" in page.partition("<main")[2]) == (True, False)
    assert (second["documents"][0]["name"], second["newer"]) == ("next-2024-06-09.txt", 3)
    # What is deleted, or replaced by a newer version, is reported no more.
    client.post("/documents/2/delete")
    upload(client, text_of(5), "newest.txt", wait=False, replaces="3")
    while (answer := report_of(client))["counts"]["near_copies"]:
        pass
    assert answer["documents"] == 3


def test_a_copy_added_later_leaves_the_pair_of_two_versions(client: FlaskClient) -> None:
    older, newer = text_of(1), text_of(1).replace(text_of(1).split()[99], "cargo")
    upload(client, f"Date: 2 May 2023\n\n{older}", "rules-2023.txt")
    upload(client, f"Date: 9 June 2024\n\n{newer}", "rules-2024.txt")
    (pair,) = report_of(client)["near_copies"]
    upload(client, f"<p>Date: 9 June 2024</p><p>{newer}", "copy.html")
    upload(client, newer, "without-date.txt")
    assert pair in report_of(client)["near_copies"]


@pytest.mark.long
def test_garbled_and_unread_documents_are_named_with_what_can_be_done(client: FlaskClient) -> None:
    upload(client, GARBLED, "garbled.txt")
    upload(client, text_of(3), "fine.txt")
    upload(client, b"%PDF-1.7 nothing", "broken.pdf")
    answer, page = report_of(client), page_of(client)
    assert [one["name"] for one in answer["garbled"]] == ["garbled.txt"]
    assert [(one["name"], one["state"]) for one in answer["unread"]] == [("broken.pdf", "failed")]
    assert answer["unread"][0]["reason"] in page
    assert 'action="/documents/1/retry?from=report"' in page
    assert 'action="/documents/3/delete?from=report"' in page
    status, address = post(client, "/documents/3/delete?from=report")
    assert (status, address) == (303, "/documents/report?deleted=3")
    page = client.get(address, headers=PAGE).text
    assert "“<bdi>broken.pdf</bdi>” deleted." in page
    assert 'action="/documents/restore?from=report"' in page
    assert post(client, "/documents/restore?from=report", document_ids="3") == (303, "/documents/report")
    assert report_of(client)["counts"]["unread"] == 1


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_text_in_a_wrong_encoding_is_garbled_and_a_file_in_a_text_is_not(encoding: str) -> None:
    german = "Die Überprüfung der Gehälter für das Schuljahr läßt länger auf sich warten als üblich. " * 3
    assert report.read_text(german.encode().decode(encoding))[1]
    assert not report.read_text(german)[1]
    assert not report.read_text(
        f"{german}![logo](data:image/png;base64,{b64encode(Random(1).randbytes(2000)).decode()})"
    )[1]


def test_identifiers_and_cells_are_not_garbled() -> None:
    random = Random(1)
    serials = ["".join(random.choices("BCDFGHJKLMPQVWXYZ", k=8)) for _ in range(60)]
    macs = [":".join(f"{random.randrange(256):02X}" for _ in range(6)) for _ in serials]
    rows = [f"Laptop;{one};{mac}" for one, mac in zip(serials, macs, strict=True)]
    table = read_csv("\n".join(["Asset;Serial;MAC", *rows]).encode(), "text/csv").text
    assert not report.read_text(table)[1]
    assert not report.read_text(table * 9)[1]
    assert not report.read_text("\n".join(f"{one}-{n}" for n, one in enumerate(serials)))[1]
    assert report.read_text(f"{table}\n\n{GARBLED}")[1]
    assert report.read_text(table.replace("Laptop", "GerÃ¤t"))[1]


@pytest.mark.long
def test_an_answer_whose_source_is_gone_is_named_until_it_is_asked_again(
    client: FlaskClient, services: Services, stub: StubModel
) -> None:
    upload(client, LAMP, "lamp.txt")
    upload(client, "A keeper tends the light.", "keeper.txt")
    stub.replies.append(Reply("Oil from whales [1]."))
    turn = ask(client, "What does the lighthouse lamp burn?")
    client.put(f"/api/turns/{turn['turn_id']}/rating", json={"rating": "up"})
    assert report_of(client)["counts"]["outdated"] == 0
    client.delete("/api/documents/1")
    (line,) = report_of(client)["outdated"]
    assert (line["turn_id"], line["rating"]) == (turn["turn_id"], "up")
    assert [one["sentence"] for one in line["changes"]] == ["“lamp.txt” (source 1) has since been deleted."]
    assert f"at={turn['turn']}&amp;edit={turn['turn']}#turn-{turn['turn']}" in page_of(client)
    other = ask(client, "Zebra quokka?")
    assert [one["question"] for one in report_of(client)["unanswered"]] == ["Zebra quokka?"]
    post(client, "/ask", question="What is a keeper?", edits_turn=str(other["turn_id"]))
    assert "Zebra quokka?" not in [one["question"] for one in report_of(client)["unanswered"]]
    next_turn = ask(client, "And why?", conversation_id=turn["conversation_id"])
    _, place = post(client, "/ask", question="And how?", edits_turn=str(next_turn["turn_id"]))
    copy = client.get(f"/api{place.partition('?')[0].partition('#')[0]}/turns").json["turns"][0]
    assert report_of(client)["counts"]["outdated"] == 1  # The newer version of the conversation has it, too.
    post(client, "/ask", question="What did the lighthouse lamp burn?", edits_turn=str(copy["turn_id"]))
    assert report_of(client)["counts"]["outdated"] == 0


@pytest.mark.long
def test_a_question_about_a_deleted_document_opens_without_it(
    client: FlaskClient, services: Services, stub: StubModel
) -> None:
    for name in ("old.txt", "new.txt"):
        upload(client, f"{LAMP} {name}", name)
    stub.default = Reply("Oil from whales [1].")
    turn = ask(client, "What does the lighthouse lamp burn?", document_ids=[1])
    client.delete("/api/documents/1")
    place = f"/conversations/{turn['conversation_id']}"
    form = (
        client.get(f"{place}?edit=1", headers=PAGE).text.partition('class="edit-question"')[2].partition("</form>")[0]
    )
    assert 'name="edits_turn"' in form
    assert 'name="document_ids"' not in form
    again = ask(client, "What does the lighthouse lamp burn?", edits_turn=turn["turn_id"])
    assert [one["document"] for one in again["sources"]] == ["new.txt"]
    assert client.get(f"/api/conversations/{again['conversation_id']}").json["scope"] is None


@pytest.mark.long
def test_what_no_question_found_is_named_once_many_were_asked(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MIN_QUESTIONS", 3)
    upload(client, LAMP, "lamp.txt")
    upload(client, "Zebras graze.", "zebras.txt")
    age(services, 30)
    for n in range(3):
        assert report_of(client)["counts"]["unused"] == 0
        ask(client, f"What does the lighthouse lamp burn {'again ' * n}?", document_ids=[1], max_history_turns=0)
    assert report_of(client)["counts"]["unused"] == 0  # They couldn't find it.
    for _ in range(3):
        ask(client, "What does the lighthouse lamp burn?")
    assert [(one["name"], one["questions"]) for one in report_of(client)["unused"]] == [("zebras.txt", 3)]
    age(services, 3)
    assert report_of(client)["counts"]["unused"] == 0


def test_a_question_that_found_nothing_is_listed_once_and_only_counted_for_an_administrator(
    app: Flask, services: Services
) -> None:
    with quick_passwords():
        for name, role in (("Ann", "admin"), ("Ben", "member")):
            add_person(services, name, role)
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    text = text_of(1)
    upload(ben, text, "mine.txt")
    upload(ben, f"<p>{text}", "mine.html")
    for question in ("Zebra quokka?", "zebra  QUOKKA?"):
        ask(ben, question)
    for scope in ({"document_ids": [1]}, {"after": "2024"}):
        ask(ben, "Quagga?", **scope)
    project = ben.post("/api/projects", json={"name": "Late", "after": "2024"}).json["project_id"]
    ask(ben, "Quagga?", project_id=project)
    answer = report_of(ben)
    assert [(one["question"], one["times"]) for one in answer["unanswered"]] == [("zebra  QUOKKA?", 2)]
    assert (answer["others_unanswered"], answer["counts"]["near_copies"]) == (None, 1)
    answer = report_of(ann)
    assert (answer["documents"], answer["others_unanswered"], set(answer["counts"].values())) == (0, 2, {0})
    assert "2 questions of other people found nothing." in page_of(ann)
    again = re.search(r'href="(/conversations/[^"#]*edit=1)#turn-1"', page_of(ben).replace("&amp;", "&"))
    assert again
    assert "<textarea" in ben.get(again[1], headers=PAGE).text
    assert "mine" not in page_of(ann)


def fill(services: Services, count: int) -> None:
    """Store so many documents of two chunks, all with much of their text in common, and so many questions."""
    moment = {"created_at": now()}
    with services.database.write() as connection:
        for n in range(count):
            text = f"{text_of(1)} {text_of(1000 + n, 60)}"
            document = {"name": f"{n}.txt", "media_type": "text/plain", "size_bytes": 1, "content_key": str(n)}
            document |= {"owner": "", "file": "", "state": "ready", "chunks": 2, "embedded": 2, "date": "2024"}
            (key,) = connection.execute(insert(documents).returning(documents.c.id), [document | moment]).scalars()
            connection.execute(insert(document_texts).values(document_id=key, text=text))
            cut = [{"document_id": key, "position": at, "start": at, "end": at + 1, "text": "-"} for at in (0, 1)]
            connection.execute(insert(chunks), cut)
        kept = {"title": "", "updated_at": now(), "overrides": {}, "turns": 0, "visible_turns": 0}
        kept |= {"visible_messages": 0} | moment
        (key,) = connection.execute(insert(conversations).returning(conversations.c.id), [kept]).scalars()
        turn = {"conversation_id": key, "status": "completed", "visible": True, "owner": "", "request": {}} | moment
        search = {"found": 0, "support": "nothing_found"}
        connection.execute(insert(turns), [turn | {"number": n, "search": search} for n in range(1, count + 1)])


@pytest.mark.long
def test_a_report_is_bounded_and_says_so(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    here = threading.current_thread()

    def executed(_c: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if threading.current_thread() is here and statement != "BEGIN":
            statements.append(statement)

    monkeypatch.setattr(report, "CHUNKS_AT_ONCE", 20)
    monkeypatch.setattr(report, "QUESTIONS_AT_ONCE", 10)
    fill(services, 40)
    with listening(Engine, "before_cursor_execute", executed):
        first = report_of(client)
        read = [one for one in statements if "substr(document_texts.text" in one]
        assert len(read) == 4  # Of ten documents each.
        of_questions = 5 * 5
        assert len(statements) <= 8 + len(read) + of_questions
        statements.clear()
        assert report_of(client) == first
        assert not [one for one in statements if "document_texts" in one]
    assert (first["counts"]["near_copies"], first["limits"]) == (39, [])
    for name, limit in (("MAX_DOCUMENTS", 30), ("MAX_QUESTIONS", 20), ("MAX_SECONDS", -1), ("MAX_LINES", 5)):
        monkeypatch.setattr(report, name, limit)
    services.reports.read.clear()
    assert report_of(client)["limits"] == [
        "Only the newest 30 documents were looked at.",
        "Documents not compared for lack of time: 30. Open the report again to continue.",
        "Only the newest 20 questions were looked at.",
    ]
