"""Reading in a process of its own: hostile files, limits, cancelling, and what that process may not do."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rag_assistant.extraction import extract as extract_module
from rag_assistant.extraction.extract import extract
from rag_assistant.extraction.formats import kinds
from rag_assistant.extraction.formats.kinds import media_type_of
from rag_assistant.extraction.formats.packages import MAX_INFLATED_BYTES
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionCancelled, ExtractionFailed
from tests.extraction.archives import (
    LAUGHS,
    a_docx,
    a_pptx,
    a_quine,
    a_sheet,
    an_epub,
    an_opendocument,
    an_xlsx,
    archive,
    lying_archive,
    paragraph,
    relations,
    shape,
)
from tests.testkit.samples import sample
from tests.testkit.shared_data import shared

BLANKS = b" " * (MAX_INFLATED_BYTES + 1)
DOCUMENT = {"_rels/.rels": relations(("officeDocument", "word/document.xml"))}


def extracted(
    tmp_path: Path, content: bytes | str, memory_mb: int = 1000, timeout_seconds: float = 30, name: str = "x"
) -> ExtractedText:
    path = tmp_path / "kept"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    media_type = media_type_of(path.read_bytes()[:4096], name)
    return extract(path, media_type, memory_mb=memory_mb, timeout_seconds=timeout_seconds)


def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> Path:
    """Let the child be this program instead of the reader, and return a file for it."""
    started = subprocess.Popen

    def start(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        return started([sys.executable, "-c", program], **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr("rag_assistant.extraction.sandbox_process.subprocess.Popen", start)
    path = tmp_path / "kept"
    path.write_bytes(b"x")
    return path


def run(path: Path, timeout_seconds: float = 20) -> ExtractedText:
    return extract(path, kinds.PDF, memory_mb=1000, timeout_seconds=timeout_seconds)


def test_what_was_found_comes_back_whole(tmp_path: Path) -> None:
    found = extracted(tmp_path, a_pptx(shape("Geese 🪿", "title"), "<p:pic/>"))
    assert found.text == "## Geese 🪿\n\n\n\n"
    assert (found.media_type, found.page_starts, found.markdown) == (kinds.PPTX, (0, 12), True)
    assert found.warning is not None
    assert "1 of 2 slides" in found.warning


@pytest.mark.parametrize(
    "bomb",
    [
        lambda: archive(DOCUMENT | {"word/document.xml": b"<w>" + BLANKS}),
        pytest.param(lambda: an_xlsx(b"<worksheet>" + BLANKS), marks=pytest.mark.long),
        pytest.param(lambda: an_epub((b"<html>" + BLANKS).decode()), marks=pytest.mark.long),
        lambda: archive({f"xl/worksheets/sheet{number}.xml": BLANKS[:9_000_000] for number in range(12)}),
    ],
    ids=["docx", "xlsx", "epub", "many parts"],
)
def test_a_bomb_is_not_unpacked(tmp_path: Path, bomb: Callable[[], bytes]) -> None:
    with pytest.raises(ExtractionFailed, match="is too large once unpacked"):
        extracted(tmp_path, bomb(), memory_mb=600)


@pytest.mark.long
def test_an_archive_that_lies_about_its_size_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(ExtractionFailed, match="a part of it cannot be unpacked"):
        extracted(tmp_path, lying_archive("word/document.xml", BLANKS, **DOCUMENT), memory_mb=600)


@pytest.mark.long
def test_a_bomb_in_an_archive_in_an_archive_is_not_reached(tmp_path: Path) -> None:
    nested = archive({"bomb.zip": archive({"0.bin": BLANKS})})
    with pytest.raises(ExtractionFailed, match="ZIP archive contains 1 file but isn't a document"):
        extracted(tmp_path, nested)
    inside = archive(DOCUMENT | {"word/document.xml": "<w/>", "word/embeddings/bomb.docx": nested})
    with pytest.raises(ExtractionFailed, match="There is no text"):
        extracted(tmp_path, inside)


@pytest.mark.long
def test_an_archive_that_repeats_itself_ends(tmp_path: Path) -> None:
    with pytest.raises(ExtractionFailed, match="too large"):
        extracted(tmp_path, a_quine())
    with pytest.raises(ExtractionFailed, match=r"ZIP archive contains \d+ files but isn't a document"):
        extracted(tmp_path, shared("documents/tika/droste.zip").read_bytes())


@pytest.mark.parametrize(
    "content",
    sample(
        [
            archive(DOCUMENT | {"word/document.xml": f"{LAUGHS}<w>&a11;</w>"}),
            archive(DOCUMENT | {"word/document.xml": f"{LAUGHS}<w>&a11;</w>".encode("utf-16")}),
            a_docx(paragraph("x"), footnotes=f"{LAUGHS}<w>&a11;</w>"),
            an_opendocument("text", "", **{"content.xml": f"{LAUGHS}<w>&a11;</w>"}),
            an_opendocument("spreadsheet", "", **{"content.xml": f"{LAUGHS}<w>&a11;</w>"}),
            an_xlsx(f"{LAUGHS}<worksheet>&a11;</worksheet>"),
            an_epub(f"{LAUGHS}<html><body>&a11;</body></html>"),
            f"{LAUGHS}<html><body>&a11;</body></html>".encode(),
            f"<?xml version='1.0'?>{LAUGHS}<svg><text>&a11;</text></svg>".encode(),
        ]
    ),
    ids=["docx", "docx utf-16", "docx part", "odt", "ods", "xlsx", "epub", "html", "svg"],
)
def test_entities_are_never_expanded(tmp_path: Path, content: bytes) -> None:
    try:
        assert len(extracted(tmp_path, content, memory_mb=600).text) < 5000
    except ExtractionFailed as error:
        assert "entities" in str(error) or "no text" in str(error)  # noqa: PT017 - both endings are right


@pytest.mark.long
@pytest.mark.parametrize("deep", [20_000, 100_000])
def test_deep_nesting_is_survived(tmp_path: Path, deep: int) -> None:
    for content in (
        "<html>" + "<div>" * deep + "geese" + "</div>" * deep,
        "<html>" + "<svg>" * deep + "geese",
        "{\\rtf1 " + "{" * deep + "geese" + "}" * deep + "}",
        a_docx("<w:sdt><w:sdtContent>" * 5000 + paragraph("geese") + "</w:sdtContent></w:sdt>" * 5000),
        "{" + '"cell_type": "x", "a": ' + "[" * deep,
    ):
        try:
            extracted(tmp_path, content)
        except ExtractionFailed as error:
            assert str(error).endswith(".")  # noqa: PT017 - it may be read or refused, but in a sentence
            assert "took longer" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("every", sample([40, 1]))
def test_fuzzed_files_end_in_text_or_in_a_sentence(every: int) -> None:
    folder = shared("documents/qpdf_fuzz")
    for path in sorted(folder.iterdir())[::every]:
        try:
            found = extract(path, kinds.PDF, memory_mb=2048, timeout_seconds=30)
            assert found.text.strip() or found.scans
        except ExtractionFailed as error:
            assert str(error).endswith(".")  # noqa: PT017 - both endings are right
            assert "took longer" not in str(error), path.name  # noqa: PT017


def test_an_end_by_each_signal_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, words in (
        ("SIGSEGV", "parser crashed on this file"),
        ("SIGABRT", "more memory than is allowed"),
        ("SIGKILL", "was killed"),
        ("SIGXCPU", "took longer than 20 seconds"),
    ):
        program = (
            "import os, signal, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
            f"os.kill(os.getpid(), signal.{name})"
        )
        with monkeypatch.context() as patched, pytest.raises(ExtractionFailed, match=words):
            run(child(tmp_path, patched, program))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit(1)", "Reading this file failed"),
        ("print('nonsense')", "made no sense"),
        ("print('[]')", "made no sense"),
        (
            'print(\'half a text\\n{"sentence": "It rained.", "cause": ""}\', end=\'\'); raise SystemExit(3)',
            "It rained",
        ),
        ("print('It rained.'); raise SystemExit(3)", "made no sense"),
    ],
)
def test_what_a_child_says_wrongly_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    with pytest.raises(ExtractionFailed, match=words):
        run(child(tmp_path, monkeypatch, program))


def test_a_child_that_prints_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract_module, "MAX_OUTPUT_BYTES", 5_000_000)
    before = psutil.Process().memory_info().rss
    with pytest.raises(ExtractionFailed, match="more text than can be stored"):
        run(child(tmp_path, monkeypatch, "import os\nwhile True: os.write(1, b'x' * 65536)"))
    assert psutil.Process().memory_info().rss - before < 50_000_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("ending", "words"), [("time.sleep(60)", "longer than 5 seconds"), ("print('{}', flush=True)", "made no sense")]
)
def test_what_a_child_started_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, words: str
) -> None:
    note = tmp_path / "grandchild"
    program = (
        "import subprocess, sys, time\n"
        "inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], stdout=subprocess.DEVNULL)\n"
        f"open({str(note)!r}, 'w').write(str(inner.pid))\n{ending}"
    )
    with pytest.raises(ExtractionFailed, match=words):
        run(child(tmp_path, monkeypatch, program), timeout_seconds=5)
    grandchild = int(note.read_text())
    until = time.monotonic() + 30
    while psutil.pid_exists(grandchild) and psutil.Process(grandchild).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "the grandchild lives on"
        time.sleep(0.02)


def test_reading_is_given_up_while_the_reader_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = iter(range(1000))
    path = child(tmp_path, monkeypatch, "import time; time.sleep(600)")
    known = set(psutil.Process().children())
    with pytest.raises(ExtractionCancelled, match="was cancelled"):
        extract(path, kinds.PDF, memory_mb=1000, timeout_seconds=600, cancelled=lambda: next(asked) == 5)
    assert next(asked) == 6, "it is asked again and again until it says so"
    assert set(psutil.Process().children()) <= known


def test_a_text_that_is_too_long_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract_module, "MAX_CHARS", 10)
    found = extracted(tmp_path, "Seventeen geese")
    assert found.text == "Seventeen "
    assert found.warning == ("Only the first 10 of 15 characters were read. Split the file to add all of it.")


def test_a_reader_has_no_key_no_network_and_changes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    victim = tmp_path / "victim"
    victim.write_text("x")
    program = f"""
import ctypes, json, os, pathlib, resource, socket, subprocess, threading
from rag_assistant.extraction.sandbox import confine, limit
limit(1000, 20)
assert confine(pathlib.Path({str(victim)!r}))[0]
libc = ctypes.CDLL(None, use_errno=True)
done = []
def attempt(name, what):
    try:
        what()
        done.append(name)
    except OSError:
        pass
attempt("socket", socket.socket)
attempt("write", lambda: open({str(victim)!r}, "w"))
attempt("append", lambda: open({str(victim)!r}, "a"))
attempt("create", lambda: open({str(victim)!r} + "2", "x"))
attempt("unlink", lambda: os.unlink({str(victim)!r}))
attempt("rename", lambda: os.rename({str(victim)!r}, {str(victim)!r} + "3"))
attempt("truncate", lambda: os.truncate({str(victim)!r}, 0))
attempt("mkdir", lambda: os.mkdir({str(tmp_path / "folder")!r}))
attempt("chmod", lambda: os.chmod({str(victim)!r}, 0))
attempt("program", lambda: subprocess.run(["true"]))
attempt("kill", lambda: os.kill(os.getppid(), 0))
attempt("fork", lambda: os.fork() or os._exit(0))
attempt("limits of another", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU))
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
NUMBERS = dict(tgkill=(234, os.getppid(), os.getppid(), 0), chroot=(161, b"/"), unshare=(272, 0x10000000),
    shmget=(29, 77, 4096, 0o1600), mq_open=(240, b"geese", 0o102, 0o600, None), memfd_create=(319, b"geese", 0),
    open_by_handle_at=(304, -100, b"x" * 64, 0), vfork=(58,), ptrace=(101, 16, os.getppid(), 0, 0),
    process_vm_readv=(310, os.getppid(), None, 0, None, 0, 0), io_uring_setup=(425, 8, b"x" * 200),
    prctl=(157, 4, 1, 0, 0, 0), own_io_signal=(72, 1, 8, os.getppid()), setsid=(112,))
for name, (number, *arguments) in NUMBERS.items():
    attempt(name, lambda: call(number, *arguments))
started = threading.Thread(target=lambda: None)
started.start()
text = f"done {{done}} key {{'OPENAI_API_KEY' in os.environ}} read {{open({str(victim)!r}).read()}}"
print(json.dumps(dict(text="", media_type="", page_starts=[], markdown=False, warning=None, scans=[])))
print(text)
"""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    assert run(child(tmp_path, monkeypatch, program)).text.strip() == "done [] key False read x"
    assert victim.read_text() == "x"
    assert {path.name for path in tmp_path.iterdir()} == {"victim", "kept"}


def test_a_reader_reads_its_own_file_and_code_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.json").write_text("sk-secret")
    program = f"""
import json, os, pathlib, sys
from rag_assistant.extraction.sandbox import confine, limit
limit(1000, 20)
closed = confine(pathlib.Path({str(tmp_path / "kept")!r}))[1]
read = []
for path in ({str(tmp_path / "settings.json")!r}, f"/proc/{{os.getppid()}}/environ", "/etc/passwd", {__file__!r}):
    try:
        read.append(open(path).read())
    except PermissionError:
        pass
import xml.dom.minidom, rag_assistant.extraction.recognised
print(json.dumps(dict(text="", media_type="", page_starts=[], markdown=False, warning=None, scans=[])))
print(f"closed {{closed}} read {{len(read)}}", open({str(tmp_path / "kept")!r}).read())
"""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    text = run(child(tmp_path, monkeypatch, program)).text.strip()
    if text == "closed False read 4 x":
        pytest.skip("this kernel cannot close the file system to a process (Landlock)")
    assert text == "closed True read 0 x"


def test_a_reader_starts_no_threads_without_end() -> None:
    """Of root's threads the system counts none, so that the reader is somebody else here."""
    program = (
        "import os, threading\nfrom rag_assistant.extraction import sandbox\nsandbox.MAX_MORE_THREADS = 1\n"
        "sandbox._threads_now = lambda: 0\nsandbox.limit(1000, 20)\nif os.geteuid() == 0: os.setuid(65534)\n"
        "threading.Thread(target=print).start()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=False, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert "can't start new thread" in ended.stderr


def test_the_real_reader_is_confined(tmp_path: Path) -> None:
    """The library fetches grammars for source code from the network, if it is let."""
    program = (
        "import sys; from rag_assistant.extraction import extract, sandbox\n"
        "def read(path, kind):\n    import socket\n    socket.socket()\n"
        "extract.read_document = read\nsys.exit(sandbox.main(extract.__name__, '1000', '10', '0', *sys.argv[1:]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x"), kinds.PDF],
        capture_output=True, text=True, check=False, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert "PermissionError" in ended.stderr
    socket.socket().close()  # Only the child is confined.


@pytest.mark.long
def test_a_reader_is_found_wherever_the_server_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("<p>Geese hiss.</p>")
    monkeypatch.chdir(tmp_path)
    assert extract(path, "text/html", memory_mb=2048, timeout_seconds=60).text.strip() == "Geese hiss."


def test_too_little_memory_is_a_sentence(tmp_path: Path) -> None:
    rows = [("geese and ducks " * 20,) * 6] * 6_000
    with pytest.raises(ExtractionFailed, match=r"memory|damaged"):
        extracted(tmp_path, an_xlsx(a_sheet(*rows)), memory_mb=75)


def test_an_upload_that_went_away_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExtractionFailed):
        extract(tmp_path / "gone", kinds.DOCX, memory_mb=1000, timeout_seconds=10)
