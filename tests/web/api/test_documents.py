"""Documents over the API: formats, states, sameness, search, deletion, refusals."""

import errno
import hashlib
import io
import os
import unicodedata

import pytest
from flask.testing import FlaskClient

from rag_assistant.conversations.exchange.files import archived_documents
from rag_assistant.documents.embedding import DocumentEmbedder
from rag_assistant.extraction.formats.kinds import SUFFIXES
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.services import Services
from tests.testkit.pdfs import new_pdf
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.documents import FACT, found, replace_after_each_read
from tests.web.conftest import ask, until, upload


def a_pdf(*pages: str) -> bytes:
    pdf = new_pdf()
    pdf.set_font("helvetica", size=12)
    for text in pages:
        pdf.add_page()
        if text:
            pdf.multi_cell(0, text=text)
    return bytes(pdf.output())


def a_docx(*paragraphs: str) -> bytes:
    import docx  # It takes as long to load as a test.

    document = docx.Document()
    document.add_heading("Notes", 1)
    for text in paragraphs:
        document.add_paragraph(text)
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "geese", "seventeen"
    held = io.BytesIO()
    document.save(held)
    return held.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    sample(
        [
            pytest.param("a.txt", FACT.encode(), marks=pytest.mark.long),
            ("b.md", f"# Birds\n\n{FACT}\n".encode()),
            pytest.param(
                "c.html", f"<title>x</title><script>var n=1</script><p>{FACT}</p>".encode(), marks=pytest.mark.long
            ),
            pytest.param("d.pdf", a_pdf("Page one is about boats.", FACT), marks=pytest.mark.long),
            ("e.docx", a_docx("Boats.", FACT)),
            pytest.param("utf16.txt", FACT.encode("utf-16"), marks=pytest.mark.long),
            ("no-suffix", FACT.encode()),
        ],
        2,
    ),
)
def test_a_document_of_each_kind_is_read_and_found(
    client: FlaskClient, confined_readers: None, name: str, content: bytes
) -> None:
    document = upload(client, content, name)
    assert (document["state"], document["reason"]) == ("ready", None)
    assert document["embedded"] == document["chunks"] > 0
    best = found(client, "lighthouse keeper geese")[0]
    assert FACT.split()[-2] in str(best["text"])
    text = client.get(f"/api/documents/{document['document_id']}/text").json["text"]
    assert text[best["start"] : best["end"]] == best["text"]
    assert "var n=1" not in text


def test_a_pdf_gives_the_page_of_a_passage(client: FlaskClient) -> None:
    upload(client, a_pdf("Boats. " * 150, FACT), "d.pdf")
    assert found(client, "seventeen geese")[0]["page"] == 2


@pytest.mark.long
def test_tables_of_a_docx_survive(client: FlaskClient) -> None:
    document = upload(client, a_docx("x"), "e.docx")
    text = client.get(f"/api/documents/{document['document_id']}/text").json["text"]
    assert "# Notes" in text
    assert "| geese | seventeen |" in text


def test_the_same_content_twice_is_one_document(client: FlaskClient, services: Services) -> None:
    first = upload(client, FACT, "a.txt")
    second = client.post("/api/documents", data={"file": (io.BytesIO(FACT.encode()), "b.txt")}).json
    assert (second["document_id"], second["new"], second["name"]) == (first["document_id"], False, "a.txt")
    assert len(client.get("/api/documents").json["documents"]) == 1
    assert len(list((services.data_dir / "uploads").iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("broken.pdf", b"%PDF-1.7 nonsense", "damaged"),
        pytest.param("blank.pdf", a_pdf("", ""), "There is no text in this file.", marks=pytest.mark.long),
        pytest.param("not.docx", b"PK\x03\x04 nonsense", "damaged", marks=pytest.mark.long),
        ("blank.txt", b" \n\t ", "There is no text"),
        pytest.param("empty.html", b"<html><script>1</script></html>", "There is no text", marks=pytest.mark.long),
    ],
)
def test_what_cannot_be_read_fails_with_a_reason(client: FlaskClient, name: str, content: bytes, reason: str) -> None:
    document = upload(client, content, name)
    assert document["state"] == "failed"
    assert reason in document["reason"]


def test_a_failed_document_is_tried_again_when_it_comes_again(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ExtractionFailed("It rained.")

    with monkeypatch.context() as patched:
        patched.setattr("rag_assistant.documents.reading.extract", fail)
        assert upload(client, FACT)["reason"] == "It rained."
    assert upload(client, FACT)["state"] == "ready"


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        ({"file": (io.BytesIO(b"\x7fELF\0\0\0"), "program")}, 415, "is a program, which has no text"),
        ({"file": (io.BytesIO(b""), "empty.txt")}, 422, "The file is empty"),
        ({}, 415, "must be multipart/form-data"),
        ({"other": (io.BytesIO(b"x"), "x.txt")}, 422, 'Unknown field "other". Allowed fields: file'),
        ({"file": [(io.BytesIO(b"x"), "x"), (io.BytesIO(b"y"), "y")]}, 422, "has 2 files; it must have one"),
    ],
)
def test_a_wrong_upload_is_refused_and_leaves_nothing(  # type: ignore[no-untyped-def]
    empty: FlaskClient, data, status, words
) -> None:
    response = empty.post("/api/documents", data=data)
    assert response.status_code == status
    assert words in response.json["error"]["message"]
    uploads = empty.application.extensions["assistant"].data_dir / "uploads"
    assert not uploads.exists() or not list(uploads.iterdir())


def test_a_file_over_the_limit_is_refused(client: FlaskClient, services: Services) -> None:
    (services.data_dir.parent / "settings.json").write_text('{"max_upload_mb": 1}')
    services.settings.look()
    for size in (1_050_000, 3_000_000):
        part = b'--cut\r\nContent-Disposition: form-data; name="file"; filename="big.txt"\r\n\r\n'
        body = part + b"x" * size + b"\r\n--cut--\r\n"
        response = client.post("/api/documents", data=body, content_type="multipart/form-data; boundary=cut")
        assert response.status_code == 413, size
        assert "1 MB" in response.json["error"]["message"]
    assert "each file may have up to 1 MB (max_upload_mb)" in response.json["error"]["message"]


def test_an_accent_is_found_however_it_is_written(client: FlaskClient) -> None:
    composed, parted = (unicodedata.normalize(form, "Übersicht.md") for form in ("NFC", "NFD"))
    assert upload(client, "Geese.", parted)["name"] == composed
    for q in (composed, parted):
        assert [one["name"] for one in client.get("/api/documents", query_string={"q": q}).json["documents"]] == [
            composed
        ]


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "x" * 5000 + ".txt",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("..\\..\\x.txt", "/", "\u202egnp.txt")),
    ],
)
def test_a_name_is_only_a_name(client: FlaskClient, services: Services, name: str) -> None:
    document = upload(client, FACT, name)
    assert "/" not in document["name"]
    assert "\\" not in document["name"]
    assert 0 < len(document["name"]) <= 255
    assert document["name"].isprintable()
    (kept,) = (services.data_dir / "uploads").iterdir()
    assert len(kept.name) == 32


def test_a_deleted_document_is_gone_at_once(client: FlaskClient, services: Services, stub: StubModel) -> None:
    kept = upload(client, "Boats and harbours.", "b.txt")
    gone = upload(client, FACT, "a.txt")
    answer = ask(client, "lighthouse geese")
    assert answer["sources"][0]["document_id"] == gone["document_id"]
    assert client.delete(f"/api/documents/{gone['document_id']}").status_code == 204
    assert {p["document_id"] for p in found(client, "geese boats harbours")} == {kept["document_id"]}
    assert client.get(f"/api/documents/{gone['document_id']}").status_code == 404
    assert client.delete(f"/api/documents/{gone['document_id']}").status_code == 404
    assert len(list((services.data_dir / "uploads").iterdir())) == 1
    ask(client, "lighthouse geese")
    assert "seventeen" not in str(stub.requests[-1].messages)


def test_a_document_is_found_by_words_before_it_is_embedded(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DocumentEmbedder, "_embed_missing", lambda *_, **__: False)
    document = upload(client, FACT, wait=False)
    path = f"/api/documents/{document['document_id']}"
    until(lambda: client.get(path).json["state"] == "embedding")
    assert found(client, "geese")[0]["document_id"] == document["document_id"]


def test_a_half_embedded_document_is_taken_up_where_it_was(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n\n".join(f"Paragraph {n} about geese. " + "Words and words. " * 45 for n in range(40))
    keep = services.embeddings.keep_embeddings
    calls: list[int] = []

    def stop_after_one(*arguments: object) -> bool:
        calls.append(1)
        return len(calls) == 1 and keep(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(services.embeddings, "keep_embeddings", stop_after_one)
        document = upload(client, text, wait=False)
        until(lambda: len(calls) == 2)
    path = f"/api/documents/{document['document_id']}"
    half = client.get(path).json
    assert (half["state"], half["embedded"]) == ("embedding", 16)
    embedder = services.embedders.configured()._model
    embedded_before = len(embedder.embedded)
    services.processing._embedding.add("embed", document["document_id"])
    until(lambda: client.get(path).json["state"] == "ready")
    whole = client.get(path).json
    assert whole["embedded"] == whole["chunks"] >= 40
    assert len(embedder.embedded) - embedded_before == whole["chunks"] - 16


def test_the_original_is_a_download_that_no_browser_opens(client: FlaskClient) -> None:
    document = upload(client, b"<html><script>alert(1)</script><p>x</p></html>", "evil.html")
    with client.get(f"/api/documents/{document['document_id']}/file") as response:
        assert response.headers["Content-Disposition"].startswith("attachment")
        assert response.content_type == "application/octet-stream"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in response.headers["Content-Security-Policy"]


@pytest.mark.long
def test_a_document_that_is_read_again_is_recognised_again(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before_there_was_a_reader:
        before_there_was_a_reader.delitem(SUFFIXES, ".csv")
        document = upload(client, "keeper,ducks\nAda,7\n", "ducks.csv")
    path = f"/api/documents/{document['document_id']}"
    assert client.get(path).json["media_type"] == "text/plain"
    assert client.post(f"{path}/retry").status_code == 202
    until(lambda: client.get(path).json["media_type"] == "text/csv")


def test_a_file_that_is_gone_is_named_and_its_text_stays(client: FlaskClient, services: Services) -> None:
    number = upload(client, "The keeper feeds geese.")["document_id"]
    services.uploads.store.drop(services.documents.with_file(number)[1])
    for response in (client.get(f"/api/documents/{number}/file"), client.post(f"/api/documents/{number}/retry")):
        assert response.status_code == 410
        assert response.json["error"]["type"] == "FileMissing"
        assert f"The file of document {number} is missing" in response.json["error"]["message"]
        assert str(services.data_dir) not in response.text
    assert client.get(f"/api/documents/{number}").json["state"] == "ready"
    assert client.get("/api/search?q=geese").json["passages"]


@pytest.mark.long
def test_a_file_that_is_replaced_while_it_is_asked_for_has_its_own_length_and_etag(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = upload(client, FACT)["document_id"]
    versions = [f"{FACT} {'Geese hiss. ' * times}".encode() for times in (1, 2, 3)]
    replace_after_each_read(services, number, versions, monkeypatch)
    with client.get(f"/api/documents/{number}/file") as response:
        assert response.get_etag() == (hashlib.sha256(response.data).hexdigest(), False)
        assert response.content_length == len(response.data)
    assert len(versions) < 3, "it was replaced meanwhile"


@pytest.mark.long
def test_a_document_that_is_replaced_while_it_is_exported_is_archived_with_its_own_file(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = upload(client, FACT)["document_id"]
    versions = [f"{FACT} Geese hiss.".encode()]
    replace_after_each_read(services, number, versions, monkeypatch)
    for document, file in archived_documents(services.documents, services.library.open_file):
        assert file is not None
        assert (document.id, document.sha256) == (number, hashlib.sha256(file.read()).hexdigest())
    assert versions == [], "it was replaced meanwhile"


@pytest.mark.long
def test_a_document_that_is_deleted_while_it_is_exported_is_left_out(client: FlaskClient, services: Services) -> None:
    upload(client, FACT)
    number = upload(client, "Geese hiss.")["document_id"]
    archived = archived_documents(services.documents, services.library.open_file)
    next(archived)
    services.library.remove(number - 1)
    assert list(archived) == []


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, "The disk is full"),
        (errno.EROFS, "could not be written to disk"),
        pytest.param(errno.EIO, "could not be written to disk", marks=pytest.mark.long),
    ],
)
def test_an_upload_that_the_disk_does_not_take_is_507_and_leaves_nothing(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    def full(_file: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("rag_assistant.files.store.os.fsync", full)
    response = client.post("/api/documents", data={"file": (io.BytesIO(b"Geese."), "geese.txt")})
    assert response.status_code == 507
    assert told in response.json["error"]["message"]
    assert services.uploads.names() == set()


def test_search_says_what_is_wrong(empty: FlaskClient) -> None:
    assert "such as /api/search?q=history+window." in empty.get("/api/search").json["error"]["message"]
    response = empty.get("/api/search?q=x&limit=1000")
    assert 'limit is "1000"; it must be a whole number from 1 to 100.' in response.json["error"]["message"]
    assert empty.get("/api/search?q=x&conversation_id=9").status_code == 404


def test_an_answer_without_documents_has_no_sources(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("Nothing [1]."))
    assert ask(client)["sources"] == []


def test_documents_are_listed_by_their_state(client: FlaskClient) -> None:
    upload(client, "Geese are fed at seven.", "geese.txt")
    upload(client, b"%PDF-1.4 and nothing more", "broken.pdf")

    def names(state: str) -> list[str]:
        return [one["name"] for one in client.get(f"/api/documents?state={state}").json["documents"]]

    assert (names("ready"), names("failed"), names("queued")) == (["geese.txt"], ["broken.pdf"], [])
    refused = client.get("/api/documents?state=lost")
    assert refused.status_code == 422
    assert 'state is "lost"; it must be one of queued, reading' in refused.json["error"]["message"]


def test_no_web_page_is_fetched_unless_that_is_switched_on(empty: FlaskClient) -> None:
    response = empty.post("/api/documents/web-page", json={"url": "https://example.org/"})
    assert (response.status_code, response.json["error"]["type"]) == (422, "AddressRefused")
    assert '"web_pages" to true' in response.json["error"]["message"]
    assert "Add page" not in empty.get("/documents").text


@pytest.mark.long
def test_search_may_name_documents(client: FlaskClient) -> None:
    upload(client, FACT, "a.txt")
    other = upload(client, "Geese are also a card game.", "b.txt")
    assert [p["document"] for p in found(client, "geese", document_id=other["document_id"])] == ["b.txt"]
    response = client.get("/api/search?q=x&document_id=y")
    assert response.status_code == 422
    assert 'document_id is "y"' in response.json["error"]["message"]


@pytest.mark.long
def test_the_id_that_a_newer_version_had_leads_to_the_document_that_it_became(client: FlaskClient) -> None:
    older = upload(client, FACT, "a.txt")["document_id"]
    newer = upload(client, "Eighteen geese.", "b.txt", wait=False, replaces=str(older))["document_id"]
    until(lambda: client.get(f"/api/documents/{newer}").json["document_id"] == older)
    assert client.get(f"/api/documents/{newer}").json["name"] == "a.txt"
    client.delete(f"/api/documents/{older}")
    assert client.get(f"/api/documents/{newer}").status_code == 404
