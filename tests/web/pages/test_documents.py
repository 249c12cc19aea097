"""The forms of the library, as a browser without scripts sends them."""

import html
import io
import re

import pytest
from flask.testing import FlaskClient

from rag_assistant.documents.embedding import DocumentEmbedder
from rag_assistant.services import Services
from tests.web.conftest import PAGE, ask, post, until, upload
from tests.web.pages.document_rows import FACT, names_on


def state(client: FlaskClient, document_id: int) -> str:
    return str(client.get(f"/api/documents/{document_id}").json["state"])


def files(*contents: tuple[bytes, str]) -> list[tuple[io.BytesIO, str]]:
    return [(io.BytesIO(content), name) for content, name in contents]


def test_several_files_are_taken_with_their_tags(client: FlaskClient) -> None:
    sent = files((b"One.", "one.txt"), (b"Two.", "two.txt"))
    assert post(client, "/documents", file=sent, tags="birds, 2024") == (303, "/documents")
    documents = client.get("/api/documents").json["documents"]
    assert [(one["name"], one["tags"]) for one in documents] == [
        ("two.txt", ["2024", "birds"]),
        ("one.txt", ["2024", "birds"]),
    ]


def test_what_is_refused_of_several_files_is_named_and_the_rest_is_taken(client: FlaskClient) -> None:
    sent = files((b"One.", "one.txt"), (b"\x7fELF\0\0\0", "program"), (b"", "empty.txt"))
    status, page = post(client, "/documents", file=sent)
    assert status == 422
    assert "1 of 3 files added. Rejected:" in page
    assert '<b dir="auto">program</b>: "program" is a program' in page
    assert '<b dir="auto">empty.txt</b>: The file is empty.' in page
    assert names_on(page) == ["one.txt"]


def test_a_wrong_form_is_refused_whole(client: FlaskClient) -> None:
    assert "The file is empty" in post(client, "/documents", file=files((b"", "e.txt")))[1]
    status, page = post(client, "/documents", file=files((b"One.", "one.txt")), tags="x" * 65)
    assert (status, "tags[0] is" in page) == (422, True)
    status, page = post(client, "/documents", file=files((b"One.", "one.txt"), (b"Two.", "two.txt")), replaces="1")
    assert (status, "a newer version must be a single file" in page) == (422, True)
    status, page = post(client, "/documents", file=files((b"One.", "one.txt")), replaces="9")
    assert (status, "There is no document 9;" in page) == (404, True)
    status, page = post(client, "/documents", file=files(*[(b"One.", "one.txt")] * 21))
    assert (status, "has 21 files; it must have 1 to 20 files" in page) == (422, True)
    assert client.get("/api/documents").json["documents"] == []


@pytest.mark.parametrize("action", ["cancel", "retry", "change", "delete"])
def test_an_action_on_a_document_that_is_not_there_says_so(empty: FlaskClient, action: str) -> None:
    status, page = post(empty, f"/documents/9/{action}", tags="birds")
    assert status == 404
    assert "There is no document 9;" in page


@pytest.mark.long
def test_work_is_cancelled_and_taken_up_again(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(DocumentEmbedder, "_embed_missing", lambda *_, **__: False)
        document_id = upload(client, FACT, wait=False)["document_id"]
        until(lambda: state(client, document_id) == "embedding")
        assert "searchable by keyword; indexing 0 of 1" in client.get("/documents").text
        assert post(client, f"/documents/{document_id}/cancel") == (303, "/documents")
        assert state(client, document_id) == "cancelled"
    assert post(client, f"/documents/{document_id}/retry") == (303, "/documents")
    until(lambda: state(client, document_id) == "ready")


def test_tags_are_set_and_taken_away(client: FlaskClient) -> None:
    path = f"/documents/{upload(client, FACT)['document_id']}/change"
    assert post(client, path, tags=" birds , sea,") == (303, "/documents")
    assert client.get("/api/documents/tags").json["tags"] == {"birds": 1, "sea": 1}
    status, page = post(client, path, tags="x" * 65)
    assert (status, "each of 1 to 64 characters, separated by commas." in page) == (422, True)
    assert post(client, path, tags="") == (303, "/documents")
    assert client.get("/api/documents/tags").json["tags"] == {}


@pytest.mark.long
def test_a_document_is_renamed_and_answers_given_before_keep_its_name(client: FlaskClient) -> None:
    document_id = upload(client, FACT, "geese.txt", tags="birds")["document_id"]
    upload(client, "Boats.", "boats.txt")
    turn = ask(client, "How many geese does the keeper feed?")
    path = f"/documents/{document_id}/change?sort=name"
    # Two documents may have one name, as files in two folders may.
    assert post(client, path, name=" boats.txt ", tags="birds") == (303, "/documents?sort=name")
    assert names_on(client.get("/documents").text) == ["boats.txt", "boats.txt"]
    assert client.get(f"/api/documents/{document_id}").json["tags"] == ["birds"]
    sources = client.get(f"/api/turns/{turn['turn_id']}").json["sources"]
    assert ("geese.txt", document_id) in [(source["document"], source["document_id"]) for source in sources]
    for name in ("", "a/b.txt", "x" * 256):
        status, page = post(client, path, name=name, tags="")
        assert (status, "Use a name of 1 to 255 characters, without slashes." in page) == (422, True)


@pytest.mark.long
def test_an_action_leads_back_to_the_part_of_the_list_where_it_was_done(client: FlaskClient) -> None:
    document_id = upload(client, FACT, "geese.txt", tags="sea birds")["document_id"]
    place = "/documents?tag=sea+birds&state=ready&sort=-size&page=1"
    page = client.get(place).text
    action = html.unescape(re.findall(r'action="([^"]*/delete[^"]*)"', page)[0])
    assert action == place.replace("?", f"/{document_id}/delete?")
    assert post(client, action) == (303, f"{place}&deleted={document_id}")
    assert "No documents tagged" in client.get("/documents?tag=sea+birds").text


def test_what_is_done_with_chosen_documents_is_done_with_each(client: FlaskClient) -> None:
    ids = [str(upload(client, f"Document {n}.", f"{n}.txt", tags="old")["document_id"]) for n in range(3)]
    asked = post(client, "/documents/selected", do="ask", document_ids=ids[:2])
    assert asked == (303, f"/?documents={ids[0]}&documents={ids[1]}")
    assert post(client, "/documents/selected?q=txt", do="tag", tags="new, old", document_ids=ids[:2])[0] == 303
    assert client.get("/api/documents/tags").json["tags"] == {"new": 2, "old": 3}
    assert post(client, "/documents/selected?q=txt", do="delete", document_ids=[*ids[:2], "99"]) == (
        303,
        f"/documents?q=txt&deleted={ids[0]}&deleted={ids[1]}&deleted=99",
    )
    assert "2 documents deleted." in client.get(f"/documents?deleted={ids[0]}&deleted={ids[1]}&deleted=99").text
    assert [one["name"] for one in client.get("/api/documents").json["documents"]] == ["2.txt"]


def test_a_choice_of_nothing_or_of_something_unknown_is_refused(client: FlaskClient) -> None:
    document_id = str(upload(client, FACT)["document_id"])
    for fields, words in [
        ({"do": "delete"}, "0 documents are selected"),
        ({"do": "burn", "document_ids": document_id}, 'do is "burn"'),
        ({"do": "delete", "document_ids": "x"}, 'document_ids is "x"'),
        (
            {"do": "tag", "document_ids": document_id, "tags": "x" * 65},
            "each of 1 to 64 characters, separated by commas.",
        ),
    ]:
        status, page = post(client, "/documents/selected", **fields)
        assert (status, words in page) == (422, True)
    assert client.get(f"/api/documents/{document_id}").status_code == 200


def test_a_newer_version_says_of_what_and_that_it_is_not_found_yet(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = upload(client, FACT, "geese.txt")["document_id"]
    monkeypatch.setattr(DocumentEmbedder, "_embed_missing", lambda *_, **__: False)
    sent = files((b"The keeper feeds eighteen geese.", "new.txt"))
    assert post(client, "/documents", file=sent, replaces=str(older)) == (303, "/documents")
    until(lambda: "indexing 0 of 1" in client.get("/documents").text)
    page = client.get("/documents").text
    assert "New version of <bdi>geese.txt</bdi>; searchable once ready" in page
    assert "searchable by keyword" not in page


def test_a_document_that_could_not_be_read_offers_no_questions_and_promises_no_text(client: FlaskClient) -> None:
    failed = upload(client, b"%PDF-1.4 and nothing more", "broken.pdf")
    read = upload(client, "Geese are fed at seven.", "geese.txt")
    assert (failed["state"], read["state"]) == ("failed", "ready")
    rows = client.get("/documents", headers=PAGE).text
    assert f'data-about="{read["document_id"]}"' in rows
    assert f'data-about="{failed["document_id"]}"' not in rows
    assert re.findall(r'value="(\d+)" data-askable', rows) == [str(read["document_id"])]
    both = [str(one["document_id"]) for one in (failed, read)]
    assert post(client, "/documents/selected", do="ask", document_ids=both) == (303, f"/?documents={both[1]}")
    status, refused = post(client, "/documents/selected", do="ask", document_ids=both[:1])
    assert (status, "None of the selected documents can be searched." in refused) == (422, True)
    page = client.get(f"/documents/{failed['document_id']}", headers=PAGE).text
    assert "Ask about this" not in page
    assert "No text yet" not in page
