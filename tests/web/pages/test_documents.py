"""The pages of the library and their forms, as a browser without scripts sends them."""

import html
import io
import re
import threading
from dataclasses import replace

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, event

from rag_assistant.extraction.formats import kinds
from rag_assistant.records import Document
from rag_assistant.web.pages import documents
from rag_assistant.web.pages.document_status import KINDS, kind_of, size_of
from rag_assistant.web.services import Services
from tests.web.conftest import PAGE, ask, post, until, upload

FACT = "The lighthouse keeper feeds seventeen geese."


def state(client: FlaskClient, document_id: int) -> str:
    return str(client.get(f"/api/documents/{document_id}").json["state"])


def files(*contents: tuple[bytes, str]) -> list[tuple[io.BytesIO, str]]:
    return [(io.BytesIO(content), name) for content, name in contents]


def birds() -> str:
    return "Bird,Number,Keeper\n" + "".join(f"goose {number},{number},keeper {7 * number}\n" for number in range(5_000))


def names_on(page: str) -> list[str]:
    return re.findall(r'<a id="document-\d+"[^>]*>([^<]*)</a>', page)


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
    assert (status, "tags is" in page) == (422, True)
    status, page = post(client, "/documents", file=files((b"One.", "one.txt"), (b"Two.", "two.txt")), replaces="1")
    assert (status, "a newer version must be a single file" in page) == (422, True)
    status, page = post(client, "/documents", file=files((b"One.", "one.txt")), replaces="9")
    assert (status, "There is no document 9;" in page) == (404, True)
    status, page = post(client, "/documents", file=files(*[(b"One.", "one.txt")] * 21))
    assert (status, "has 21 files; it must have 1 to 20 files" in page) == (422, True)
    assert client.get("/api/documents").json["documents"] == []


@pytest.mark.parametrize("action", ["cancel", "retry", "change", "delete"])
def test_an_action_on_a_document_that_is_not_there_says_so(client: FlaskClient, action: str) -> None:
    status, page = post(client, f"/documents/9/{action}", tags="birds")
    assert status == 404
    assert "There is no document 9;" in page


def test_work_is_cancelled_and_taken_up_again(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(services.library._embedder, "_embed_missing", lambda _document_id, _model: False)
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
    assert ("geese.txt", document_id) in [(source["document_name"], source["document_id"]) for source in sources]
    for name in ("", "a/b.txt", "x" * 256):
        status, page = post(client, path, name=name, tags="")
        assert (status, "Use a name of 1 to 255 characters, without slashes." in page) == (422, True)


def test_an_action_leads_back_to_the_part_of_the_list_where_it_was_done(client: FlaskClient) -> None:
    document_id = upload(client, FACT, "geese.txt", tags="sea birds")["document_id"]
    place = "/documents?tag=sea+birds&state=ready&sort=-size&page=1"
    page = client.get(place).text
    action = html.unescape(re.findall(r'action="([^"]*/delete[^"]*)"', page)[0])
    assert action == place.replace("?", f"/{document_id}/delete?")
    assert post(client, action) == (303, place)
    assert "No documents tagged" in client.get("/documents?tag=sea+birds").text


def test_the_columns_sort_the_list_and_say_so(client: FlaskClient) -> None:
    for name, text in (("b 10.txt", "One."), ("a.txt", "Two, three."), ("B 2.txt", "Four five six seven.")):
        upload(client, text, name)
    for sort, names in (
        ("name", ["a.txt", "B 2.txt", "b 10.txt"]),
        ("-size", ["B 2.txt", "a.txt", "b 10.txt"]),
        ("added", ["b 10.txt", "a.txt", "B 2.txt"]),
    ):
        assert names_on(client.get(f"/documents?sort={sort}").text) == names
    page = client.get("/documents?tag=&sort=name").text
    assert re.findall(r'aria-sort="(\w+)"><a +href="([^"]*)">(\w+)<', page) == [
        ("ascending", "/documents?sort=-name", "Name")
    ]
    response = client.get("/documents?sort=colour", headers=PAGE)
    assert response.status_code == 422
    assert "sort is" in response.text


def test_the_list_says_how_much_there_is_and_is_filtered_by_status(client: FlaskClient) -> None:
    upload(client, "x" * 1500, "geese.txt")
    upload(client, b"%PDF-1.4 and nothing more", "broken.pdf")
    page = client.get("/documents").text
    assert "2 documents, <bdi>1.5 kB</bdi>" in page
    counts = re.findall(r'href="([^"]*)" (?:aria-current="true")?>(\w+) <span class="count">(\d+)', page)
    assert counts == [
        ("/documents", "All", "2"),
        ("/documents?state=ready", "Ready", "1"),
        ("/documents?state=failed", "Failed", "1"),
    ]
    failed = client.get("/documents?state=failed").text
    assert names_on(failed) == ["broken.pdf"]
    assert "1 document, <bdi>25 bytes</bdi>" in failed
    assert "No documents with this status." in client.get("/documents?state=cancelled").text
    assert client.get("/documents?state=lost", headers=PAGE).status_code == 422


def test_a_long_list_takes_no_more_statements_than_a_short_one(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        if threading.current_thread() is threading.main_thread():  # What is worked on behind takes its own.
            statements.append(statement)

    def taken() -> int:
        statements.clear()
        client.get("/documents?sort=name&q=txt")
        return len(statements)

    first = upload(client, "One.", "1.txt")["document_id"]
    client.get("/documents")
    event.listen(Engine, "before_cursor_execute", note)
    try:
        few = taken()
        for n in range(2, 6):
            upload(client, f"Document {n}.", f"{n}.txt")
        monkeypatch.setattr(services.library._embedder, "_embed_missing", lambda _document_id, _model: False)
        upload(client, "One, but newer.", "1.txt", replaces=first, wait=False)
        assert taken() == few + 1  # Where one waits, it is asked once whether anybody works.
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_the_list_is_filtered_by_a_tag_and_refuses_what_is_none(client: FlaskClient) -> None:
    upload(client, FACT, "geese.txt", tags="birds")
    upload(client, "Boats.", "boats.txt")
    page = client.get("/documents?tag=birds").text
    assert names_on(page) == ["geese.txt"]
    assert 'href="/?tag=birds">Ask about these</a>' in page
    response = client.get("/documents", query_string={"tag": "x" * 65}, headers=PAGE)
    assert response.status_code == 422


def test_documents_are_sought_by_words_of_their_names_and_tags(client: FlaskClient) -> None:
    upload(client, FACT, "Geese 100%.txt", tags="birds, sea")
    upload(client, "Gulls.", "gulls_1.txt", tags="birds")
    for sought, found in [
        ("geese", ["Geese 100%.txt"]),
        ("bird", ["gulls_1.txt", "Geese 100%.txt"]),
        ("bird SEA", ["Geese 100%.txt"]),
        ("%", ["Geese 100%.txt"]),
        ("_", ["gulls_1.txt"]),
        ("zebra", []),
    ]:
        assert names_on(client.get("/documents", query_string={"q": sought}).text) == found
        listed = client.get("/api/documents", query_string={"q": sought}).json["documents"]
        assert [one["name"] for one in listed] == found
    assert client.get("/api/documents", query_string={"q": "x" * 201}).status_code == 422
    assert "No documents match “<bdi>&lt;b&gt;</bdi>”." in client.get("/documents?q=<b>").text


def test_what_is_done_with_chosen_documents_is_done_with_each(client: FlaskClient) -> None:
    ids = [str(upload(client, f"Document {n}.", f"{n}.txt", tags="old")["document_id"]) for n in range(3)]
    asked = post(client, "/documents/selected", do="ask", document_ids=ids[:2])
    assert asked == (303, f"/?documents={ids[0]}&documents={ids[1]}")
    assert post(client, "/documents/selected?q=txt", do="tag", tags="new, old", document_ids=ids[:2])[0] == 303
    assert client.get("/api/documents/tags").json["tags"] == {"new": 2, "old": 3}
    assert post(client, "/documents/selected?q=txt", do="delete", document_ids=[*ids[:2], "99"]) == (
        303,
        "/documents?q=txt",
    )
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


def test_older_documents_are_on_the_next_page(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "DOCUMENTS_SHOWN", 2)
    for n in range(1, 5):
        upload(client, f"Document {n}.", f"{n}.txt")
    first = client.get("/documents?sort=-added").text
    assert names_on(first) == ["4.txt", "3.txt"]
    (following,) = re.findall(r'rel="next" href="([^"]*)">Next', first)
    second = client.get(html.unescape(following)).text
    assert names_on(second) == ["2.txt", "1.txt"]
    assert "Page 2 of 2" in second
    assert ">Next<" not in second
    assert 'rel="prev" href="/documents?sort=-added">Previous' in second
    assert names_on(client.get("/documents?page=99").text) == ["2.txt", "1.txt"]


def test_a_newer_version_says_of_what_and_that_it_is_not_found_yet(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = upload(client, FACT, "geese.txt")["document_id"]
    monkeypatch.setattr(services.library._embedder, "_embed_missing", lambda _document_id, _model: False)
    sent = files((b"The keeper feeds eighteen geese.", "new.txt"))
    assert post(client, "/documents", file=sent, replaces=str(older)) == (303, "/documents")
    until(lambda: "indexing 0 of 1" in client.get("/documents").text)
    page = client.get("/documents").text
    assert "New version of <bdi>geese.txt</bdi>; searchable once ready" in page
    assert "searchable by keyword" not in page


def test_a_document_shows_its_passage_exactly_with_its_section_and_without_its_marks_meaning_anything(
    client: FlaskClient,
) -> None:
    text = f"# Prices\n\nBoats <b>pass</b> &amp; stay.\n\n## Europe & more\n\n{FACT}\n"
    document_id = upload(client, text, "prices.md")["document_id"]
    found = client.get("/api/search?q=geese").json["passages"][0]
    start, end = text.index(FACT), text.index(FACT) + len(FACT)
    page = client.get(f"/documents/{document_id}?start={start}&end={end}").text
    assert re.findall(r'<mark id="passage"[^>]*>(.*?)</mark>', page, re.DOTALL) == [FACT]
    shown = page[page.index('<div class="drawn"') : page.index("</section>")]
    assert html.unescape(re.sub(r"<[^<>]*>", "", shown)).split() == text.replace("#", "").split()
    assert "<h3>Europe &amp; more</h3>" in shown
    assert html.escape(found["section"], quote=False) in page


def test_a_document_of_no_text_and_positions_that_are_none_are_answered(client: FlaskClient) -> None:
    document_id = upload(client, " \n ", "blank.txt")["document_id"]
    page = client.get(f"/documents/{document_id}?start=5&end=9").text
    assert "No text yet." not in page
    assert "There is no text in this file." in page
    for wrong in ("start=x", "end=-1", "at=1.5"):
        assert client.get(f"/documents/{document_id}?{wrong}").status_code == 422, wrong


def test_every_kind_of_file_has_a_name() -> None:
    known = {value for value in vars(kinds).values() if isinstance(value, str) and re.fullmatch(r"\w+/[\w.+-]+", value)}
    assert known == set(KINDS)


@pytest.mark.parametrize(
    ("media_type", "pages", "size", "words"),
    [
        (kinds.PDF, 12, 820, "PDF, 12 pages, 820 bytes"),
        (kinds.PPTX, 1, 1_440_000, "PowerPoint, 1 slide, 1.4 MB"),
        (kinds.PLAIN, None, 99_960, "Text, 100 kB"),
        ("application/unheard-of", None, 2_000_000_000, "File, 2.0 GB"),
    ],
)
def test_a_document_is_described_in_words(
    client: FlaskClient, services: Services, media_type: str, pages: int | None, size: int, words: str
) -> None:
    document = services.documents.get(upload(client, FACT)["document_id"])
    fields = {name: getattr(document, name) for name in Document.__slots__}
    described = Document(**(fields | {"media_type": media_type, "pages": pages, "size_bytes": size}))
    assert f"{kind_of(described)}, {size_of(described)}" == words


@pytest.mark.parametrize(
    ("name", "media_type", "words"),
    [
        ("Plan.DOCX", kinds.ZIP, "Word"),
        ("sums.xlsm", kinds.ZIP, "Excel"),
        ("old.ppt", kinds.OLE, "PowerPoint"),
        ("all.zip", kinds.ZIP, "ZIP archive"),
        ("plan", kinds.OLE, "Office file"),
        ("trick.pdf", kinds.ZIP, "ZIP archive"),
    ],
)
def test_a_container_that_is_not_looked_into_yet_is_called_by_the_end_of_its_name(
    client: FlaskClient, services: Services, name: str, media_type: str, words: str
) -> None:
    document = services.documents.get(upload(client, FACT)["document_id"])
    assert kind_of(replace(document, name=name, media_type=media_type)) == words


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


def test_a_row_of_a_table_is_shown_in_its_table_and_sent_with_its_head(client: FlaskClient) -> None:
    upload(client, birds(), "birds.csv")
    source = ask(client, "Which number has goose 117?")["sources"][0]
    assert source["text"].startswith("| Bird | Number | Keeper |\n| --- | --- | --- |\n| goose ")
    page = client.get("/turns/1/sources/1").text
    drawn = page[page.index('<div class="drawn"') :]
    assert drawn.count("<table>") == 1
    assert "<th>Bird</th>" in drawn
    assert "---" not in drawn
    marked = [int(number) for number in re.findall(r"<mark[^>]*>goose (\d+)</mark>", drawn)]
    assert marked == list(range(marked[0], marked[-1] + 1))
    assert 117 in marked
    assert f"<td>goose {marked[-1] + 1}</td>" in drawn
    chip = html.unescape(re.findall(r'data-passage="([^"]*)"', client.get("/conversations/1").text)[0])
    assert chip.startswith(f"Bird: goose {marked[0]}, Number: {marked[0]}, Keeper: ")


def test_a_row_of_a_table_that_is_gone_is_shown_with_its_head(client: FlaskClient) -> None:
    added = upload(client, birds(), "birds.csv")
    ask(client, "Which number has goose 117?")
    client.delete(f"/api/documents/{added['document_id']}")
    page = client.get("/turns/1/sources/1").text
    assert "The document has been deleted." in page
    assert "<td><mark>117</mark></td>" in page
    assert "---" not in page


def test_a_part_of_a_large_table_is_shown_with_its_head(client: FlaskClient) -> None:
    added = upload(client, birds(), "birds.csv")
    page = client.get(f"/documents/{added['document_id']}?at=100000").text
    assert page.count("<table>") == 1
    assert "<th>Bird</th>" in page
    assert "---" not in page
