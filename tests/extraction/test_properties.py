"""The date among the properties of a file, in each format that has some."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fpdf import FPDF

from rag_assistant.extraction.formats.packages import date_in
from tests.extraction.archives import a_pptx, a_sheet, an_opendocument, an_xlsx, shape
from tests.extraction.features import page_of, pdf, rtf
from tests.extraction.reading import read

CORE = (
    '<cp:coreProperties xmlns:cp="urn:cp" xmlns:dcterms="http://purl.org/dc/terms/">'
    "<dcterms:created>2019-02-03T10:00:00Z</dcterms:created>"
    "<dcterms:modified>2024-03-04T10:00:00Z</dcterms:modified></cp:coreProperties>"
)
META = (
    '<office:document-meta xmlns:office="urn:office" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:meta="urn:meta"><office:meta><meta:creation-date>2019-02-03T10:00:00</meta:creation-date>'
    "<dc:date>2024-03-04T10:00:00.5</dc:date></office:meta></office:document-meta>"
)
PAGE = '<html><head><meta property="article:modified_time" content="2024-03-04T10:00:00Z"></head><p>Geese.</p></html>'


def a_dated_pdf() -> bytes:
    def draw(page: FPDF) -> None:
        page.cell(text="Seventeen geese live here.")
        page.set_creation_date(datetime(2024, 3, 4, tzinfo=UTC))

    return pdf(draw)


MADE: dict[str, Callable[[], bytes | str]] = {
    "PPTX": lambda: a_pptx(shape("Geese"), **{"docProps/core.xml": CORE}),
    "XLSX": lambda: an_xlsx(a_sheet(("goose", "hiss")), **{"docProps/core.xml": CORE}),
    "ODT": lambda: an_opendocument("text", "<office:text><text:p>Geese.</text:p></office:text>", **{"meta.xml": META}),
    "HTML": lambda: PAGE,
    "PDF": a_dated_pdf,
    "RTF": lambda: rtf(r"{\info{\creatim\yr2024\mo3\dy4\hr10\min0}}Geese."),
}


@pytest.mark.parametrize("kind", MADE)
def test_a_file_has_the_date_of_its_properties(tmp_path: Path, kind: str) -> None:
    assert read(tmp_path, MADE[kind]()).dates == {"properties": "2024-03-04"}


@pytest.mark.parametrize("content", ["Geese.", page_of("<p>Geese.</p>"), a_pptx(shape("Geese"))])
def test_without_such_properties_there_is_none(tmp_path: Path, content: bytes | str) -> None:
    assert read(tmp_path, content).dates.get("properties") is None


def test_broken_properties_are_no_date_and_no_reason_to_warn(tmp_path: Path) -> None:
    extracted = read(tmp_path, a_pptx(shape("Geese"), **{"docProps/core.xml": CORE[:-9]}))
    assert (extracted.dates, extracted.warning) == ({"properties": None}, None)


@pytest.mark.parametrize(
    ("stamps", "expected"),
    [
        (("D:20240304100000+01'00'",), "2024-03-04"),
        (("", None, "2024-03-04"), "2024-03-04"),
        (("D:19700101000000", "20240304"), "2024-03-04"),
        (("2024-02-31",), None),
        (("2999-01-01",), None),
        (("yesterday",), None),
        (("2013-12-23T23:15:00Z", "2013-01-27T09:15:58Z"), None),
        ((), None),
    ],
)
def test_the_first_plausible_time_is_taken(stamps: tuple[str | None, ...], expected: str | None) -> None:
    assert date_in(*stamps) == expected
