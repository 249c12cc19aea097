"""PDF files for tests. What makes them is loaded when first needed: most processes that collect tests never need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fpdf import FPDF


def new_pdf() -> FPDF:
    """Return a PDF without pages."""
    from fpdf import FPDF

    return FPDF()
