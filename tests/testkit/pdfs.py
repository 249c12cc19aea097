"""PDF files for tests. What makes them is loaded when first needed: most processes that collect tests never need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fpdf import FPDF


def new_pdf() -> FPDF:
    """Return a PDF without pages."""
    from fpdf import FPDF

    return FPDF()


def chart_pdf(*texts: str, chart_on: int | None = None) -> bytes:
    """Return a PDF with a page for each text; on the last or another is a bar chart without words, and its caption."""
    pdf = new_pdf()
    pdf.set_font("helvetica", size=12)
    for number, text in enumerate(texts, 1):
        pdf.add_page()
        pdf.multi_cell(0, text=text, new_x="LMARGIN", new_y="NEXT")
        if number == (chart_on or len(texts)):
            for n, height in enumerate((20, 35, 60, 45, 80)):
                pdf.rect(30 + 25 * n, 150 - height, 15, height, style="F")
            pdf.set_xy(20, 160)
            pdf.cell(text="Figure 1: Geese counted at the lighthouse in each year")
    return bytes(pdf.output())
