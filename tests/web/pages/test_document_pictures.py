"""The passage behind a number, and pictures of pages, as they come over HTTP."""

import hashlib
import html
import io
import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.documents import page_images
from rag_assistant.documents.page_images import PageView
from rag_assistant.extraction.formats.kinds import PDF
from rag_assistant.extraction.page_render import Mark
from rag_assistant.records import NewDocument
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.services import Services
from tests.testkit.pdfs import new_pdf
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.documents import replace_after_each_read
from tests.web.conftest import PAGE, ask, upload
from tests.web.pages.document_rows import FACT, enter

QUESTION = "How many geese does the keeper feed?"


def a_pdf(*more: str) -> bytes:
    pdf = new_pdf()
    pdf.set_font("helvetica", size=12)
    for text in ("Boats pass.", f"{FACT} Gulls steal bread.", *more):
        pdf.add_page()
        pdf.multi_cell(0, text=text)
    return bytes(pdf.output())


def a_pdf_to_draw(services: Services) -> int:
    """Enter a PDF of which only pictures are asked for, and return its id."""
    (services.data_dir / "uploads").mkdir(exist_ok=True)
    name = "9" * 32
    (services.data_dir / "uploads" / name).touch()
    return services.documents.add(NewDocument("geese.pdf", PDF, 0, hashlib.sha256().hexdigest(), name))[0].id


@pytest.fixture
def drawings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Mark]]:
    """Put something quick in the place of the process that draws, and note what it was asked for."""
    asked: list[tuple[int, Mark]] = []

    def draw(_path: object, _kind: str, page: int, mark: Mark, **_limits: Any) -> bytes:
        asked.append((page, mark))
        if page > 2:
            raise ExtractionFailed(f"There is no page {page}; the document has 2 pages.")
        return b"\x89PNG\r\n\x1a\n" + b"x" * 100

    monkeypatch.setattr(page_images, "draw_page", draw)
    return asked


def test_a_picture_is_one_that_we_drew(client: FlaskClient) -> None:
    document_id = upload(client, a_pdf(), "geese.pdf")["document_id"]
    response = client.get(f"/documents/{document_id}/pages/2.png?start=13&end=57")
    assert response.status_code == 200
    assert response.data.startswith(b"\x89PNG\r\n\x1a\n")
    assert response.content_type == "image/png"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "no-store"


def test_what_of_the_passage_stands_on_the_page_is_marked(client: FlaskClient, drawings: list[Any]) -> None:
    document_id = upload(client, a_pdf(), "geese.pdf")["document_id"]
    text = client.get(f"/api/documents/{document_id}/text").json["text"]
    marked = f"start={text.index('pass')}&end={text.index('keeper')}"
    for page, whole in ((1, ""), (2, "&whole=0")):
        assert client.get(f"/documents/{document_id}/pages/{page}.png?{marked}{whole}").status_code == 200
    assert [(page, mark.passage.strip(), mark.before, mark.whole) for page, mark in drawings] == [
        (1, "pass.", 5, True),
        (2, "The lighthouse", 0, False),
    ]


def test_a_picture_is_drawn_once_and_few_are_kept(
    client: FlaskClient, services: Services, drawings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_images, "MAX_KEPT_BYTES", 250)
    document_id = a_pdf_to_draw(services)
    for start in (0, 0, 1, 2, 2, 0):
        client.get(f"/documents/{document_id}/pages/1.png?start={start}&end=9")
    assert len(drawings) == 4


def test_what_cannot_be_drawn_says_why_and_is_not_tried_at_every_look(
    client: FlaskClient, services: Services, drawings: list[Any]
) -> None:
    document_id = a_pdf_to_draw(services)
    for _ in range(2):
        response = client.get(f"/documents/{document_id}/pages/7.png", headers={"Accept": "application/json"})
        assert response.status_code == 422
        assert response.json["error"]["message"] == "There is no page 7; the document has 2 pages."
    assert len(drawings) == 1
    note = enter(services, "note.txt")
    response = client.get(f"/documents/{note}/pages/1.png", headers={"Accept": "application/json"})
    assert "note.txt is neither a PDF" in response.json["error"]["message"]
    assert client.get("/documents/99/pages/1.png", headers=PAGE).status_code == 404


@pytest.mark.long
def test_a_picture_is_kept_for_the_version_that_was_drawn(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_images, "draw_page", lambda path, *_asked, **_limits: path.read_bytes())
    older, newer = a_pdf(), a_pdf("Swans hiss.")
    number = upload(client, older, "geese.pdf")["document_id"]
    replace_after_each_read(services, number, [newer], monkeypatch)
    assert services.page_images.picture(services.documents, number, PageView(1)) == newer
    again = upload(client, older, "geese.pdf")["document_id"]
    for document_id, content in ((again, older), (number, newer)):
        assert services.page_images.picture(services.documents, document_id, PageView(1)) == content


def test_no_more_pages_are_drawn_at_once_than_a_machine_bears(
    client: FlaskClient, services: Services, drawings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_images, "WAIT_TIMEOUT_SECONDS", 0.01)
    document_id = a_pdf_to_draw(services)
    for _ in range(page_images.MAX_DRAWN_AT_ONCE):
        assert services.page_images._drawing.acquire(timeout=1)
    refused = client.get(f"/documents/{document_id}/pages/1.png", headers={"Accept": "application/json"})
    assert "Other pages are being rendered" in refused.json["error"]["message"]
    services.page_images._drawing.release()
    assert client.get(f"/documents/{document_id}/pages/1.png").status_code == 200
    services.page_images._drawing.release()
    assert len(drawings) == 1


def test_a_source_is_shown_in_its_document_with_those_beside_it(client: FlaskClient, stub: StubModel) -> None:
    upload(client, f"{FACT}\n", "geese.txt")
    upload(client, "The keeper of the lighthouse feeds the geese with bread.", "bread.txt")
    stub.default = Reply("Seventeen [1].")
    turn = ask(client, QUESTION)
    assert len(turn["sources"]) == 2
    first = client.get(f"/turns/{turn['turn_id']}/sources/1?drawer=1").text
    assert "Passage 1 of 2" in first
    assert f'href="/turns/{turn["turn_id"]}/sources/2#passage"' in first
    assert 'rel="prev"' not in first
    assert turn["sources"][0]["text"].strip() in html.unescape(first)
    missing = client.get(f"/turns/{turn['turn_id']}/sources/3", headers=PAGE)
    assert (missing.status_code, "Turn 1 has no source 3." in missing.text) == (404, True)


def test_of_a_pdf_the_part_with_the_passage_is_shown_and_the_whole_page_on_demand(client: FlaskClient) -> None:
    upload(client, a_pdf(), "geese.pdf")
    place = f"/turns/{ask(client, QUESTION)['turn_id']}/sources/1"
    part = html.unescape(client.get(place).text)
    document = client.get("/api/documents").json["documents"][0]["document_id"]
    text = client.get(f"/api/documents/{document}/text").json["text"]
    quote = text.index(FACT)
    assert f"?start={quote}&end={quote + len(FACT)}&" in part
    assert 'alt="Part of page 2 of geese.pdf, passage highlighted"' in part
    assert "&whole=0" in part
    whole = html.unescape(client.get(html.unescape(re.findall(r'href="([^"]*)">Whole page', part)[0])).text)
    assert 'alt="Page 2 of geese.pdf, passage highlighted"' in whole
    assert "whole=0" not in whole
    assert re.findall(r'href="([^"]*)">Passage only', whole) == [f"{place}?page=2"]


@pytest.mark.long
def test_a_source_whose_document_changed_or_went_is_shown_as_it_was_sent(client: FlaskClient) -> None:
    document_id = upload(client, FACT, "geese.txt")["document_id"]
    place = f"/turns/{ask(client, QUESTION)['turn_id']}/sources/1"
    longer = {"file": (io.BytesIO(f"Since last year: {FACT}".encode()), "geese.txt"), "replaces": str(document_id)}
    client.post("/api/documents", data=longer)
    upload(client, "Something else.", "other.txt")
    moved = client.get(place).text
    assert f'tabindex="-1">{FACT}</mark>' in moved
    changed = {"file": (io.BytesIO(b"The keeper feeds eighteen geese."), "geese.txt"), "replaces": str(document_id)}
    client.post("/api/documents", data=changed)
    upload(client, "Something else again.", "other2.txt")
    page = client.get(place).text
    assert "no longer contains this passage" in page
    assert f">{FACT}</mark>" in page
    client.delete(f"/api/documents/{document_id}")
    page = client.get(place).text
    assert "The document has been deleted." in page
    assert f">{FACT}</mark>" in page
