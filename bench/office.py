"""Questions about fifteen office files without a model: are quotes right and complete, or is "no answer" honest?

Two halves by file: ``a`` was in view while answers were built, ``b`` is the test. ``python -m bench.office`` prints
both tables, ``python -m bench.office a`` also the answers in half ``a``. All files were written for this benchmark.
"""

import csv
import io
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import docx
from fpdf import FPDF

from rag_assistant.conversations.summary_lines import LEAD_NEAR
from rag_assistant.records import Question, Turn
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.extraction.archives import an_xlsx

FILES = Path(__file__).with_name("office")
VERDICTS = ("right", "near", "no", "wrong")


def main(shown: Sequence[str] = ()) -> None:
    """Print the quality of each half's answers, by kind of question; for ``shown`` halves each answer."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app({"DATA_DIR": folder, "SETTINGS_FILE": f"{folder}/none.json"})
        services: Services = app.extensions["assistant"]
        services.start()
        for path in sorted(FILES.glob("?/*")):
            services.library.accept(io.BytesIO(content_of(path)), name_of(path))
        while any(document.state not in ("ready", "failed") for document in services.documents.page(50)):
            time.sleep(0.1)
        print("| half | kind | questions | in the first quote | " + " | ".join(VERDICTS) + " |\n" + "|---" * 8 + "|")
        for half in ("a", "b"):
            print_half(services, half, half in shown)
        services.close()


def print_half(services: Services, half: str, is_shown: bool) -> None:
    """Ask the questions about one half of the files and print its rows."""
    questions = json.loads((FILES / f"{half}.json").read_text(encoding="utf-8"))
    counts: dict[str, Counter[str]] = {}
    for one in questions:
        turn = services.assistant.wait(services.assistant.ask(Question(one["question"])).id)
        verdict = verdict_of(one, turn)
        for kind in (one["kind"], "all"):
            count = counts.setdefault(kind, Counter())
            count[verdict] += 1
            count["first"] += is_in_first_quote(one, turn)
        if is_shown:
            print(f"\n{verdict}: {one['question']} {one['expect']}\n{turn.answer}\n", flush=True)
    for kind in sorted(counts, key=lambda kind: (kind == "all", kind)):
        count = counts[kind]
        verdicts = " | ".join(str(count[verdict]) for verdict in VERDICTS)
        print(
            f"| {half} | {kind} | {sum(count[one] for one in VERDICTS)} | {count['first']} | {verdicts} |", flush=True
        )


def verdict_of(one: Mapping[str, Any], turn: Turn) -> str:
    """Return the verdict on an answer: everything expected and nothing forbidden, or less, or honestly none.

    If nothing answers the question, offering only related passages as such is honest, too.
    """
    is_near = turn.answer.startswith(LEAD_NEAR)
    if not one["expect"]:
        return "right" if turn.support == "nothing_found" else "near" if is_near else "wrong"
    if turn.support == "nothing_found":
        return "no"
    text = squeezed(turn.answer)
    holds = [squeezed(wanted) in text for wanted in one["expect"]]
    has_others = any(squeezed(other) in text for other in one.get("not", ()))
    if all(holds) and not has_others:
        return "right"
    return "near" if all(holds) or is_near or (any(holds) and not has_others) else "wrong"


def is_in_first_quote(one: Mapping[str, Any], turn: Turn) -> bool:
    """Return whether everything expected comes before the first citation."""
    first = squeezed(turn.answer.partition(" [")[0].partition("\n> [")[0])
    return bool(one["expect"]) and all(squeezed(wanted) in first for wanted in one["expect"])


def squeezed(text: str) -> str:
    """Return a text in lower case without quote and table markup, with single blanks."""
    return " ".join(text.replace("\n>", "\n").replace("**", "").lower().split())


def name_of(path: Path) -> str:
    """Return the name a file is added under: ``x.pdf.txt`` is the text of ``x.pdf``."""
    return path.stem if "." in path.stem else path.name


def content_of(path: Path) -> bytes:
    """Return the content of a file, generated from its text if it isn't a text file."""
    text = path.read_text(encoding="utf-8")
    make = {".pdf": pdf_of, ".docx": docx_of, ".xlsx": xlsx_of}.get(Path(name_of(path)).suffix)
    return make(text) if make else text.encode()


def pdf_of(text: str) -> bytes:
    """Return a PDF with a text's lines."""
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=10)
    pdf.multi_cell(0, text=text)
    return bytes(pdf.output())


def docx_of(text: str) -> bytes:
    """Return a DOCX with the headings, paragraphs, lists and tables of a Markdown text."""
    document = docx.Document()
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        if block.startswith("#"):
            marks, _, title = block.partition(" ")
            document.add_heading(title, len(marks))
        elif block.startswith("|"):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]
            table = document.add_table(len(rows), len(rows[0]))
            for row, values in zip(table.rows, rows, strict=True):
                for cell, value in zip(row.cells, values, strict=True):
                    cell.text = value
        else:
            for line in lines if block.startswith("- ") else [" ".join(lines)]:
                document.add_paragraph(line.removeprefix("- "), "List Bullet" if line.startswith("- ") else None)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def xlsx_of(text: str) -> bytes:
    """Return a workbook with the rows of a CSV."""
    rows = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in csv.reader(io.StringIO(text)))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return an_xlsx(f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>')


def _cell(value: str) -> str:
    return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'


if __name__ == "__main__":
    main(sys.argv[1:])
