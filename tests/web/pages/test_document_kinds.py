"""What kind of file a document is, in words."""

import re

import pytest
from flask.testing import FlaskClient
from msgspec.structs import replace

from rag_assistant.extraction.formats import kinds
from rag_assistant.records import Document
from rag_assistant.services import Services
from rag_assistant.web.pages.document_status import KINDS, in_units, kind_of
from tests.web.conftest import upload
from tests.web.pages.document_rows import FACT


def test_every_kind_of_file_has_a_name() -> None:
    known = {value for value in vars(kinds).values() if isinstance(value, str) and re.fullmatch(r"\w+/[\w.+-]+", value)}
    assert known == set(KINDS)


@pytest.fixture
def document(client: FlaskClient, services: Services) -> Document:
    """A document, of which a test changes what it is about."""
    return services.documents.get(upload(client, FACT)["document_id"])


def test_a_document_is_described_in_words(document: Document) -> None:
    for media_type, pages, size, words in (
        (kinds.PDF, 12, 820, "PDF, 12 pages, 820 bytes"),
        (kinds.PPTX, 1, 1_440_000, "PowerPoint, 1 slide, 1.4 MB"),
        (kinds.PLAIN, None, 99_960, "Text, 100 kB"),
        ("application/unheard-of", None, 2_000_000_000, "File, 2.0 GB"),
    ):
        described = replace(document, media_type=media_type, pages=pages, size_bytes=size)
        assert f"{kind_of(described)}, {in_units(described.size_bytes)}" == words


def test_a_container_that_is_not_looked_into_yet_is_called_by_the_end_of_its_name(document: Document) -> None:
    for name, media_type, words in (
        ("Plan.DOCX", kinds.ZIP, "Word"),
        ("sums.xlsm", kinds.ZIP, "Excel"),
        ("old.ppt", kinds.OLE, "PowerPoint"),
        ("all.zip", kinds.ZIP, "ZIP archive"),
        ("plan", kinds.OLE, "Office file"),
        ("trick.pdf", kinds.ZIP, "ZIP archive"),
    ):
        assert kind_of(replace(document, name=name, media_type=media_type)) == words, name
