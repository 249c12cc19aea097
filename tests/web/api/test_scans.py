"""Scanned pages and images, from the upload to the mark on the picture of the page."""

import html
import io
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.documents.reading import RECOGNITION_MISSING
from rag_assistant.extraction.page_render import TINT
from rag_assistant.records.documents import RecognisedPage, Word
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.pdfs import new_pdf
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, until, upload

FACT = "The lighthouse keeper feeds seventeen geese."
QUESTION = "How many geese does the keeper feed?"
OTHER = "Boats pass the tower at noon."
NO_TEXT = "no readable text, but a scan, a picture, or letters that the font does not name."
FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
RECOGNISE = "rag_assistant.documents.reading.recognise"
pytest.importorskip("rapidocr", reason="the extra ocr is not installed")
pytestmark = [
    pytest.mark.skipif(not FONT.exists(), reason="Debian's fonts-dejavu-core is not installed"),
    pytest.mark.settings(OCR="auto"),
]


def a_scan(*lines: str, kind: str = "PNG") -> bytes:
    """Return a picture of a tilted page with a line every 80 pixels."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (900, 500), "white")
    for n, line in enumerate(lines):
        font = ImageFont.truetype(str(FONT), 28)
        ImageDraw.Draw(page).text((60, 60 + 80 * n), line, font=font, fill="black")
    file = io.BytesIO()
    page.rotate(0.6, fillcolor="white", resample=Image.Resampling.BICUBIC).save(file, kind)
    return file.getvalue()


def a_pdf(*pages: str | bytes) -> bytes:
    """Return a PDF with a page for each text, and for each picture."""
    pdf = new_pdf()
    pdf.set_font("helvetica", size=12)
    for page in pages:
        pdf.add_page()
        if isinstance(page, str):
            pdf.multi_cell(0, text=page)
        else:
            pdf.image(io.BytesIO(page), x=10, y=40, w=190)
    return bytes(pdf.output())


def rows_tinted(picture: bytes) -> tuple[list[int], int]:
    """Return in which rows of a picture something is marked, and how many rows it has."""
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as image:
        marked = [
            y
            for y in range(image.height)
            if TINT in {colour for _, colour in image.crop((0, y, image.width, y + 1)).getcolors(9999) or ()}
        ]
        return marked, image.height


def state_of(client: FlaskClient, document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/documents/{document['document_id']}").json
    return found


@pytest.mark.long
def test_a_picture_of_text_answers_a_question_and_its_source_is_marked(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, a_scan("Gulls steal bread.", OTHER, FACT, "The bell is silent."), "page.png")
    assert (document["state"], document["media_type"], document["pages"]) == ("ready", "image/png", 1)
    assert (document["scanned_pages"], document["recognised_pages"]) == (1, 1)
    stub.replies.append(Reply("Seventeen [1]."))
    source = ask(client, QUESTION)["sources"][0]
    assert FACT in source["text"]
    text = client.get(f"/api/documents/{document['document_id']}/text").json["text"]
    start = text.index(FACT)
    address = f"/documents/{document['document_id']}/pages/1.png?start={start}&end={start + len(FACT)}"
    marked, height = rows_tinted(client.get(address).data)
    # Drawn at 220 of 500 pixels; tilted, it begins up to 5 pixels lower and ends as much higher.
    assert 0.43 < marked[0] / height < marked[-1] / height < 0.54
    page = client.get(f"/documents/{document['document_id']}?start={start}&end={start + len(FACT)}", headers=PAGE)
    assert "pages/1.png" in page.text


@pytest.mark.long
def test_of_a_mixed_pdf_the_scanned_page_alone_is_recognised(client: FlaskClient) -> None:
    document = upload(client, a_pdf(OTHER, a_scan(FACT)), "mixed.pdf", wait=False)
    until(lambda: state_of(client, document)["state"] == "ready")
    done = state_of(client, document)
    assert (done["pages"], done["scanned_pages"], done["recognised_pages"], done["reason"]) == (2, 1, 1, None)
    passages = client.get("/api/search", query_string={"q": QUESTION}).json["passages"]
    assert FACT in passages[0]["text"]
    assert passages[0]["page"] == 2
    place = f"start={passages[0]['start']}&end={passages[0]['start'] + len(FACT)}"
    page = html.unescape(client.get(f"/documents/{document['document_id']}?{place}&whole=1", headers=PAGE).text)
    (address,) = re.findall(r'src="([^"]*/pages/2\.png\?[^"]*)"', page)
    marked, height = rows_tinted(client.get(address).data)
    # The picture is 190 mm wide on a page of 297 mm, 40 mm from its upper edge; the line is at 60 of 900 pixels.
    assert abs((marked[0] + marked[-1]) / 2 / height - (40 + 190 * 76 / 900) / 297) < 0.02


class Recogniser:
    """In the place of the process: it says the same of each page, once a test lets it."""

    def __init__(self) -> None:
        self.go_on = threading.Semaphore(0)
        self.pages: list[int] = []

    def __call__(self, _path: Path, _kind: str, pages: Sequence[int], **options: Any) -> Iterator[RecognisedPage]:
        for page in pages:
            while not self.go_on.acquire(timeout=0.02):
                if options["cancelled"]():
                    from rag_assistant.records.errors import ExtractionCancelled

                    raise ExtractionCancelled
            self.pages.append(page)
            yield RecognisedPage(page, ((Word(f"{FACT} Page {page}.", 10, 10, 90, 20),),))


@pytest.fixture
def recogniser(monkeypatch: pytest.MonkeyPatch) -> Recogniser:
    made = Recogniser()
    monkeypatch.setattr(RECOGNISE, made)
    return made


@pytest.mark.long
def test_progress_is_shown_and_what_has_text_goes_first(client: FlaskClient, recogniser: Recogniser) -> None:
    scan = upload(client, a_pdf(*[a_scan("x")] * 3), "scan.pdf", wait=False)
    until(lambda: state_of(client, scan)["state"] == "recognising")
    recogniser.go_on.release()
    until(lambda: state_of(client, scan)["recognised_pages"] == 1)
    page = client.get("/documents", headers=PAGE).text
    assert "recognising text, page 1 of 3" in page
    assert '<progress max="3" value="1"' in page
    note = upload(client, OTHER, wait=False)
    recogniser.go_on.release()  # The page at hand is finished; then the note has its turn.
    until(lambda: state_of(client, note)["state"] == "ready")
    assert state_of(client, scan)["recognised_pages"] == 2
    recogniser.go_on.release()
    until(lambda: state_of(client, scan)["state"] == "ready")
    assert recogniser.pages == [1, 2, 3]


@pytest.mark.long
def test_a_cancelled_recognition_keeps_what_was_written(client: FlaskClient, recogniser: Recogniser) -> None:
    mixed = upload(client, a_pdf(OTHER, a_scan("x"), a_scan("x")), "mixed.pdf", wait=False)
    scan = upload(client, a_pdf(a_scan("x")), "scan.pdf", wait=False)
    for document, state in ((mixed, "ready"), (scan, "cancelled")):
        until(lambda: state_of(client, document)["state"] == "recognising")  # noqa: B023 - it is called here
        client.post(f"/api/documents/{document['document_id']}/cancel")
        assert state_of(client, document)["state"] == state
    assert "Text recognition was cancelled" in state_of(client, mixed)["reason"]
    assert client.get("/api/search?q=boats").json["passages"]
    recogniser.go_on.release(3)
    client.post(f"/api/documents/{mixed['document_id']}/retry")
    until(lambda: state_of(client, mixed)["state"] == "ready")
    assert (state_of(client, mixed)["recognised_pages"], state_of(client, mixed)["reason"]) == (2, None)


@pytest.mark.long
def test_what_was_recognised_before_a_stop_is_not_recognised_again(
    app: Flask, environment: dict[str, str], recogniser: Recogniser
) -> None:
    client = app.test_client()
    scan = upload(client, a_pdf(*[a_scan("x")] * 3), "scan.pdf", wait=False)
    recogniser.go_on.release(2)
    until(lambda: state_of(client, scan)["recognised_pages"] == 2)
    app.extensions["assistant"].close()
    again = create_app(environment)
    services: Services = again.extensions["assistant"]
    services.start()
    try:
        recogniser.go_on.release(2)
        until(lambda: state_of(again.test_client(), scan)["state"] == "ready")
    finally:
        services.close()
    assert recogniser.pages == [1, 2, 3]


def test_without_the_extra_each_document_says_how_to_get_it_and_is_read_once_it_is_there(
    app: Flask, environment: dict[str, str], recogniser: Recogniser, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = app.test_client()
    with monkeypatch.context() as missing:
        missing.setattr("rag_assistant.documents.reading.is_installed", lambda: False)
        image = upload(client, a_scan("x"), "page.png")
        mixed = upload(client, a_pdf(OTHER, a_scan("x")), "mixed.pdf")
        assert (image["state"], mixed["state"]) == ("failed", "ready")
        assert image["reason"] == f"Page 1 of 1 holds {NO_TEXT} {RECOGNITION_MISSING}"
        assert mixed["reason"] == f"Page 2 of 2 holds {NO_TEXT} {RECOGNITION_MISSING}"
        assert "[ocr]" in RECOGNITION_MISSING
        app.extensions["assistant"].close()
    recogniser.go_on.release(2)
    again = create_app(environment)
    services: Services = again.extensions["assistant"]
    services.start()
    try:
        for document in (image, mixed):
            until(lambda: state_of(again.test_client(), document)["state"] == "ready")  # noqa: B023
            assert state_of(again.test_client(), document)["reason"] is None
    finally:
        services.close()


@pytest.mark.settings(OCR="off")
def test_switched_off_is_said_for_each_document(client: FlaskClient, recogniser: Recogniser) -> None:
    scan = upload(client, a_pdf(a_scan("x"), a_scan("x")), "scan.pdf")
    assert scan["state"] == "failed"
    assert scan["reason"] == (f"2 of 2 pages hold {NO_TEXT} Text recognition is switched off (setting ocr).")
    german = client.get("/documents?state=failed", headers=PAGE | {"Accept-Language": "de"}).text
    assert "2 von 2 Seiten enthalten keinen lesbaren Text" in german
    assert "/retry" not in german, "it would fail again"
    assert recogniser.pages == []


@pytest.mark.long
def test_a_picture_without_text_and_a_damaged_one_fail_in_plain_words(client: FlaskClient) -> None:
    blank = upload(client, a_scan(), "blank.jpg")
    assert (blank["state"], blank["reason"]) == ("failed", "No text was recognised in it.")
    broken = upload(client, b"\x89PNG\r\n\x1a\n" + b"no picture" * 9, "broken.png")
    assert (broken["state"], broken["reason"]) == ("failed", "This image is damaged and cannot be read.")
