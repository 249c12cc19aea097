"""The pages of projects and the sidebar's order, as plain forms: everything works without scripts."""

import io
import re

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from rag_assistant.services import Services
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.web.api.test_projects import make
from tests.web.conftest import PAGE, ask, post, until, upload
from tests.web.pages.conversation_rows import rows


def titles_under(page: str, heading: str) -> list[str]:
    """Return the titles below a heading of the sidebar."""
    sidebar = page[page.index('id="conversations"') : page.index('class="sidebar-foot"')]
    for group in sidebar.split('<section class="group">')[1:]:
        if heading in group[: group.index("</h2>")]:
            return re.findall(r'class="title" dir="auto">([^<]*)<', group)
    return []


def new(client: FlaskClient, title: str, **fields: object) -> int:
    made: int = client.post("/api/conversations", json={"title": title} | fields).json["conversation_id"]
    ask(client, "Why?", conversation_id=made)
    return made


def test_a_project_is_made_changed_used_and_deleted_with_plain_forms(client: FlaskClient) -> None:
    document = upload(client, "Boats.", "boats.txt", tags="sea")["document_id"]
    assert upload(client, b"%PDF-1.7 broken", "broken.pdf")["state"] == "failed"
    made = client.post("/projects", data={"name": "Harbour"})
    assert (made.status_code, made.headers["Location"]) == (303, "/projects/1")
    fields = {
        "name": "Port", "instructions": "Speak of boats.", "max_history_turns": "all", "history_strategy": "",
        "on_overflow": "ask", "document_ids": str(document), "tags": "sea",
    }  # fmt: skip
    assert client.post("/projects/1", data=fields).status_code == 303
    project = client.get("/api/projects/1").json
    assert (project["name"], project["instructions"], project["max_history_turns"]) == ("Port", "Speak of boats.", None)
    assert (project["on_overflow"], project["scope"]) == (
        "ask",
        {"document_ids": [document], "tags": ["sea"], "library_ids": [], "after": None, "before": None},
    )
    page = client.get("/projects/1").text
    assert 'value="all"' in page
    assert f'name="document_ids" value="{document}" checked> <bdi>boats.txt' in page
    assert "broken.pdf" not in page
    assert '<input type="hidden" name="project_id" value="1">' in client.get("/?project=1").text
    asked = client.post("/ask", data={"question": "Why boats?", "project_id": "1"})
    conversation = int(asked.headers["Location"].split("/")[2].split("#")[0])
    page = client.get(f"/conversations/{conversation}").text
    assert titles_under(page, "Port") == ["Why boats?"]
    assert "Filter: <bdi>boats.txt, if tagged sea</bdi>" in page
    assert "Why boats?" in client.get("/projects/1").text
    assert client.post("/projects/1", data={"document_ids": "", "tags": ""}).status_code == 303
    assert client.get("/api/projects/1").json["scope"] is None
    assert client.post("/projects/1/delete").headers["Location"] == "/projects"
    assert client.get("/projects/1", headers=PAGE).status_code == 404
    assert titles_under(client.get("/").text, "Today") == ["Why boats?"]


def add_files(client: FlaskClient, project: int, *names: str) -> TestResponse:
    files = [(io.BytesIO(f"About {name}.".encode()), name) for name in names]
    return client.post(f"/projects/{project}/files", data={"file": files}, headers=PAGE)


def files_on_page(client: FlaskClient, project: int) -> list[str]:
    page = client.get(f"/projects/{project}", headers=PAGE).text
    return re.findall(r'dir="auto" href="/documents/\d+">([^<]*)<', page)


@pytest.mark.long
def test_a_refused_file_keeps_no_other_out_of_the_project(client: FlaskClient) -> None:
    first = upload(client, "Boats.", "boats.txt")["document_id"]
    project = make(client, document_ids=[first])["project_id"]
    files = [(io.BytesIO(b"Ropes."), "ropes.txt"), (io.BytesIO(b"\x7fELF\0"), "x")]
    assert client.post(f"/projects/{project}/files", data={"file": files}, headers=PAGE).status_code == 415
    assert files_on_page(client, project) == ["boats.txt", "ropes.txt"]


@pytest.mark.long
def test_files_are_added_to_a_project_on_its_page(client: FlaskClient) -> None:
    first = upload(client, "Boats.", "boats.txt", tags="sea")["document_id"]
    whole, chosen, tagged = (make(client, name=name)["project_id"] for name in ("All", "Chosen", "Tagged"))
    client.patch(f"/api/projects/{chosen}", json={"document_ids": [first]})
    client.patch(f"/api/projects/{tagged}", json={"tags": ["sea"]})
    assert "Questions search all your documents." in client.get(f"/projects/{whole}", headers=PAGE).text
    asked = add_files(client, whole, "a.txt").headers["Location"]
    assert client.get(f"/api/projects/{whole}").json["scope"] is None, "it asks all, the new one too"
    new = asked.removeprefix(f"/projects/{whole}?added=")
    page = client.get(asked, headers=PAGE).text
    assert "1 document added. Questions still search all your documents." in page
    assert f'name="document_ids" value="{new}">' in page, "what the button chooses"
    assert add_files(client, chosen, "b.txt", "c.txt").status_code == 303
    assert files_on_page(client, chosen) == ["boats.txt", "b.txt", "c.txt"]
    assert add_files(client, tagged, "d.txt").status_code == 303
    tags = {one["name"]: one["tags"] for one in client.get("/api/documents").json["documents"]}
    assert (tags["d.txt"], tags["b.txt"]) == (["sea"], [])
    assert client.get(f"/api/projects/{tagged}").json["scope"]["document_ids"] == []
    refused = client.post(f"/projects/{chosen}/files", data={"file": (io.BytesIO(b"\x7fELF\0"), "x")}, headers=PAGE)
    assert refused.status_code == 415
    assert "is a program" in refused.text
    client.delete(f"/api/documents/{first}")
    assert files_on_page(client, chosen) == ["b.txt", "c.txt"]
    assert "A document that was deleted or that you can" in client.get(f"/projects/{chosen}", headers=PAGE).text


def test_a_project_says_of_which_dates_its_documents_are(client: FlaskClient) -> None:
    client.post("/api/projects", json={"name": "News", "after": "2020", "before": "2023-05"})
    assert "Filter: documents dated 2020 - May 2023." in client.get("/projects/1").text


@pytest.mark.long
def test_a_project_shows_its_latest_conversations_in_the_sidebar_and_all_on_its_page(client: FlaskClient) -> None:
    project = make(client)["project_id"]
    inside = [new(client, f"Inside {n}", project_id=project) for n in range(6)]
    outside = new(client, "Outside")
    client.patch(f"/api/conversations/{inside[5]}", json={"pinned": True})
    page = client.get("/").text
    assert titles_under(page, "Pinned") == ["Inside 5"]
    assert titles_under(page, "Harbour") == [f"Inside {n}" for n in (4, 3, 2, 1, 0)]
    assert titles_under(page, "Today") == ["Outside"]
    new(client, "Inside 6", project_id=project)
    assert titles_under(client.get("/").text, "Harbour") == [f"Inside {n}" for n in (6, 4, 3, 2, 1)]
    assert client.get(f"/projects/{project}").text.count('name="conversation_ids"') == 7
    listed = client.get(f"/api/conversations?project_id={project}").json["conversations"]
    assert outside not in [one["conversation_id"] for one in listed]
    assert len(listed) == 7


def test_a_conversation_moves_into_a_project_and_out_of_it(client: FlaskClient) -> None:
    project, conversation = make(client)["project_id"], new(client, "Wanders")
    assert f'<option value="{project}">Harbour</option>' in client.get(f"/conversations/{conversation}").text
    for to, heading in ((str(project), "Harbour"), ("", "Today")):
        assert post(client, f"/conversations/{conversation}/change", project_id=to)[0] == 303
        page = client.get(f"/conversations/{conversation}").text
        assert titles_under(page, heading) == ["Wanders"]
    assert post(client, f"/conversations/{conversation}/change", project_id="9")[0] == 404


def test_selected_conversations_are_moved_and_deleted_and_that_is_undone(client: FlaskClient) -> None:
    project = make(client)["project_id"]
    inside, one, other = new(client, "In", project_id=project), new(client, "One"), new(client, "Other")

    def projects() -> list[int | None]:
        there = {one["conversation_id"]: one for one in client.get("/api/conversations").json["conversations"]}
        return [there[number].get("project_id") if number in there else -1 for number in (inside, one, other)]

    page = client.get("/conversations?select=1").text
    for number in (inside, one, other):
        assert f'<input type="checkbox" name="conversation_ids" value="{number}">' in page
    chosen = {"conversation_ids": [str(inside), str(one)]}
    moved = client.post("/conversations/selected", data=chosen | {"do": "move", "project_id": str(project)})
    assert projects() == [project, project, None]
    page = client.get(moved.headers["Location"]).text
    assert "2 conversations moved." in page
    undo = page[page.index('class="confirmation"') :].partition("</form>")[0]
    fields = {"do": "move"} | {
        name: re.findall(rf'name="{name}" value="(\d*)"', undo) for name in ("conversation_ids", "project_ids")
    }
    assert client.post("/conversations/selected", data=fields).status_code == 303
    assert projects() == [project, None, None]
    deleted = client.post("/conversations/selected", data=chosen | {"do": "delete", "shown_project": str(project)})
    assert projects() == [-1, -1, None]
    assert deleted.headers["Location"].startswith(f"/projects/{project}?deleted=")
    assert "2 conversations deleted." in client.get(deleted.headers["Location"]).text
    assert client.post("/conversations/selected", data=chosen | {"do": "restore"}).status_code == 303
    assert projects() == [project, None, None]
    refused = client.post("/conversations/selected", data={"conversation_ids": [str(one), "99"], "do": "delete"})
    assert refused.status_code == 404
    assert projects() == [project, None, None], "nothing is deleted where one is missing"


@pytest.mark.long
def test_archived_conversations_are_in_a_list_of_their_own_until_somebody_asks_in_them(client: FlaskClient) -> None:
    project = make(client)["project_id"]
    inside, one, other = new(client, "In", project_id=project), new(client, "One"), new(client, "Other")
    client.patch(f"/api/conversations/{one}", json={"pinned": True})

    def in_list(query: str = "") -> set[int]:
        return {one["conversation_id"] for one in client.get(f"/api/conversations{query}").json["conversations"]}

    chosen = {"conversation_ids": [str(inside), str(one)]}
    archived = client.post("/conversations/selected", data=chosen | {"do": "archive"})
    page = client.get(archived.headers["Location"]).text
    assert "2 conversations archived." in page
    assert re.findall(r'data-conversation="(\d+)"', page.partition("<main")[0]) == [str(other)]
    assert (in_list(), in_list("?archived=1"), in_list(f"?project_id={project}")) == ({other}, {inside, one}, set())
    page = client.get("/conversations?archived=1").text
    for number in (inside, one):
        assert f'<input type="checkbox" name="conversation_ids" value="{number}">' in page
    assert client.get(f"/api/conversations/{one}").json["pinned"] is False
    assert "In" in [hit["title"] for hit in client.get("/api/conversations?q=in").json["conversations"]]
    restored = client.post("/conversations/selected", data={"conversation_ids": [str(one)], "do": "unarchive"})
    assert restored.status_code == 303
    assert in_list() == {other, one}
    client.post("/api/query", json={"question": "How many keepers?", "conversation_id": inside})
    assert (in_list(), in_list("?archived=1")) == ({inside, one, other}, set())
    assert "archived" not in client.get(f"/api/conversations/{inside}").json


def test_an_answer_that_ended_while_nobody_looked_is_marked_until_somebody_does(
    client: FlaskClient, services: Services
) -> None:
    followed = ask(client, "Followed?")["conversation_id"]
    assert 'class="unread"' not in client.get("/").text
    response = client.post("/ask", data={"question": "Left alone?"})
    left = int(response.headers["Location"].split("/")[2].split("#")[0])
    until(lambda: client.get(f"/api/conversations/{left}/turns").json["turns"][0]["status"] == "completed")
    tag = client.head(f"/api/conversations/{left}").headers["ETag"]
    assert [one.id for one in services.conversations.entries(9, pinned=False) if one.unread] == [left]
    page = client.get(f"/conversations/{followed}").text
    assert page.count('class="unread"') == 1
    assert rows(page) == [left, followed]
    client.get(f"/conversations/{left}")
    assert 'class="unread"' not in client.get("/").text
    assert client.head(f"/api/conversations/{left}").headers["ETag"] == tag


def test_who_may_only_read_a_project_uses_it_and_sees_no_form(app: Flask, services: Services) -> None:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    secret = upload(ann, "Hidden.", "hidden name.txt")["document_id"]
    project = make(ann, document_ids=[secret])["project_id"]
    assert post(ann, f"/projects/{project}/shares", person="Ben", access="read")[0] == 303
    assert 'name="person" value="Ben"' in ann.get(f"/projects/{project}").text
    assert post(ann, f"/projects/{project}/shares", person="Nobody", access="read")[0] == 404
    page = ben.get(f"/projects/{project}").text
    assert "This project belongs to Ann." in page
    assert "Speak of boats." in page
    assert "hidden name" not in page
    assert "<textarea" not in page
    assert f'href="/?project={project}"' in page
    assert ben.post(f"/projects/{project}", data={"name": "Mine"}, headers=PAGE).status_code == 403
    assert add_files(ben, project, "stray.txt").status_code == 403
    assert ben.get("/api/documents").json["documents"] == []
    assert post(ann, f"/projects/{project}/shares", everyone="write")[0] == 303
    page = ben.get(f"/projects/{project}").text
    assert "<textarea" in page
    assert "hidden name" not in page
    assert ben.post(f"/projects/{project}/delete", headers=PAGE).status_code == 403
