"""(f) Text recognition: which documents without text become findable, its accuracy, and its cost per page.

Needs the shared data and the extra ocr.
"""

import resource
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench.documents import DATA
from rag_assistant.extraction.extract import extract
from rag_assistant.extraction.formats.kinds import JPEG, media_type_of
from rag_assistant.extraction.recognised import text_of
from rag_assistant.extraction.text_recognition import recognise
from rag_assistant.records.documents import RecognisedPage
from rag_assistant.records.errors import ExtractionFailed, UnsupportedDocument

MEMORY_MB, TIMEOUT_SECONDS = 2048, 120.0
MAX_PAGES = 5
# Pages with this many words are turned into scans: 200 dots per inch, skewed like a sheet on a scanner.
PAGES_READ_AGAIN, MIN_WORDS_READ_AGAIN, MAX_WORDS_READ_AGAIN = 16, 100, 800
SCAN_PIXELS, TILT_DEGREES = 2340, 0.6
# A findable document has at least this many words.
MIN_WORDS = 5


@dataclass(frozen=True)
class Scan:
    """A document with scanned pages, and what was recognised on the first of them."""

    name: str
    is_textless: bool
    scans: int
    pages: list[RecognisedPage]
    cpu_seconds: float

    @property
    def words(self) -> int:
        """The number of recognised words."""
        return sum(len(text_of(page).split()) for page in self.pages)


def scans() -> list[Scan]:
    """Recognise the first scanned pages of each of the shared documents."""
    found = []
    for path in sorted(path for path in DATA.rglob("*") if path.is_file()):
        try:
            media_type = media_type_of(path.read_bytes()[:4096], path.name)
            text = extract(path, media_type, memory_mb=MEMORY_MB, timeout_seconds=TIMEOUT_SECONDS)
        except (UnsupportedDocument, ExtractionFailed):
            continue
        if not text.scans:
            continue
        before = _cpu_seconds()
        wanted = text.scans[:MAX_PAGES]
        pages = list(recognise(path, media_type, wanted, memory_mb=MEMORY_MB, timeout_seconds=TIMEOUT_SECONDS))
        name = str(path.relative_to(DATA))
        found.append(Scan(name, not text.text.strip(), len(text.scans), pages, _cpu_seconds() - before))
        last = found[-1]
        print(
            f"- {name}: {last.words} words on {len(pages)} of {last.scans} pages, {last.cpu_seconds:.1f} s", flush=True
        )
    return found


def read_again() -> None:
    """Turn text pages into tilted scans, and print the share of their words that is recognised."""
    import pypdfium2
    from PIL import Image

    shares: list[float] = []
    seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(DATA.rglob("*.pdf")):
            if len(shares) == PAGES_READ_AGAIN:
                break
            try:
                page = pypdfium2.PdfDocument(path)[0]
                words = page.get_textpage().get_text_bounded().split()
                picture = page.render(scale=SCAN_PIXELS / max(*page.get_size(), 1.0)).to_pil().convert("RGB")
            except pypdfium2.PdfiumError:
                continue
            if not MIN_WORDS_READ_AGAIN <= len(words) <= MAX_WORDS_READ_AGAIN:
                continue
            scan = Path(folder) / "scan"
            tilted = picture.rotate(TILT_DEGREES, fillcolor="white", resample=Image.Resampling.BICUBIC)
            tilted.save(scan, "JPEG", quality=75)
            before = _cpu_seconds()
            (found,) = recognise(scan, JPEG, (1,), memory_mb=MEMORY_MB, timeout_seconds=TIMEOUT_SECONDS)
            seconds += _cpu_seconds() - before
            missing = Counter(words) - Counter(text_of(found).split())
            shares.append(1 - missing.total() / len(words))
            print(f"- {path.relative_to(DATA)}: {shares[-1]:.3f} of {len(words)} words", flush=True)
    if shares:
        mean, middle = sum(shares) / len(shares), sorted(shares)[len(shares) // 2]
        print(
            f"\n{len(shares)} pages as scans: {mean:.3f} of the words on average, {middle:.3f} in the middle,", end=" "
        )
        print(f"{seconds / len(shares):.1f} s of CPU a page, its process included.")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the result of each document, and the totals."""
    read_again()
    found = scans()
    for kind, some in (
        ("without any text", [scan for scan in found if scan.is_textless]),
        ("with other pages", [scan for scan in found if not scan.is_textless]),
    ):
        pages = [page for scan in some for page in scan.pages]
        findable = sum(scan.words >= MIN_WORDS for scan in some)
        seconds = sum(scan.cpu_seconds for scan in some)
        problems = Counter(page.problem for page in pages if page.problem)
        print(f"\n{kind}: {len(some)} documents, {findable} findable; {len(pages)} pages recognised,", end=" ")
        print(
            f"{sum(scan.words for scan in some)} words, {seconds / max(1, len(pages)):.1f} s of CPU a page; {problems}"
        )
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\nMost memory of one process: {largest:.0f} MB.")
