"""ZIP archives: each file in one becomes a document, within limits; what is refused is named."""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.extraction import archives
from rag_assistant.services import Services
from tests.extraction.archives import a_docx, archive, paragraph
from tests.web.api.documents import found
from tests.web.conftest import until


def add(client: FlaskClient, content: bytes, name: str = "handbook.zip", **fields: str) -> Any:
    return client.post("/api/documents/archive", data={"file": (io.BytesIO(content), name), **fields})


def added(client: FlaskClient, content: bytes, **fields: str) -> list[tuple[str, list[str]]]:
    """Return the names and tags of the documents from an archive, in its order; nothing in it is refused."""
    answer = add(client, content, **fields)
    assert answer.status_code == 202
    assert answer.json["refused"] == []
    return [(one["name"], one["tags"]) for one in answer.json["documents"]]


def refused(client: FlaskClient, content: bytes) -> dict[str, str]:
    return {one["name"]: one["reason"] for one in add(client, content).json["refused"]}


def zipped(*members: tuple[zipfile.ZipInfo | str, bytes | str]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as written:
        for member, content in members:
            written.writestr(member, content)
    return held.getvalue()


def named_in(encoding: str, parts: Mapping[str, str]) -> bytes:
    """Return an archive whose names are in an encoding, without being flagged as UTF-8."""
    written = {
        f"{number:0{len(name.encode(encoding))}}": (name, text) for number, (name, text) in enumerate(parts.items())
    }
    content = archive({placeholder: text for placeholder, (_, text) in written.items()})
    for placeholder, (name, _) in written.items():
        content = content.replace(placeholder.encode(), name.encode(encoding))
    return content


def test_each_file_becomes_a_document_with_the_archive_and_its_folder_as_tags(
    client: FlaskClient, services: Services
) -> None:
    content = archive(
        {
            "geese.txt": "Geese graze at dawn.",
            "birds/sea/gulls.md": "# Gulls\n\nGulls nest on cliffs.",
            "birds/swans.docx": a_docx(paragraph("Swans weigh twelve kilograms.")),
            "birds/": "",
            ".hidden/secret.txt": "Hidden.",
            "__MACOSX/birds/._swans.docx": "Resources.",
        }
    )
    assert added(client, content, tags="2024") == [
        ("geese.txt", ["2024", "handbook"]),
        ("gulls.md", ["2024", "birds/sea", "handbook"]),
        ("swans.docx", ["2024", "birds", "handbook"]),
    ]
    until(lambda: not services.processing.busy)
    assert [one["state"] for one in client.get("/api/documents?tag=handbook").json["documents"]] == ["ready"] * 3
    assert found(client, "swans weigh")[0]["document"] == "swans.docx"
    again = add(client, content).json["documents"]
    assert [one["new"] for one in again] == [False] * 3


def test_a_file_that_is_refused_or_fails_does_not_stop_the_others(client: FlaskClient, services: Services) -> None:
    content = archive(
        {
            "a.txt": "Geese.",
            "film.mkv": b"\x1aE\xdf\xa3\0\0",
            "empty.txt": "",
            "torn.pdf": b"%PDF-1.7 torn",
            "z.txt": "Swans.",
        }
    )
    answer = add(client, content).json
    assert [one["name"] for one in answer["documents"]] == ["a.txt", "torn.pdf", "z.txt"]
    assert [one["name"] for one in answer["refused"]] == ["film.mkv", "empty.txt"]
    assert '"film.mkv" is audio or video' in answer["refused"][0]["reason"]
    until(lambda: not services.processing.busy)
    states = {one["name"]: one["state"] for one in client.get("/api/documents").json["documents"]}
    assert states == {"a.txt": "ready", "torn.pdf": "failed", "z.txt": "ready"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", ("passwd", ["etc", "handbook"])),
        ("/root/geese.txt", ("geese.txt", ["handbook", "root"])),
        ("C:\\birds\\geese.txt", ("geese.txt", ["birds", "handbook"])),
        ("..", ("unnamed", ["handbook"])),
        ("a,b/geese.txt", ("geese.txt", ["a b", "handbook"])),
        ("vögel/gänse.txt", ("gänse.txt", ["handbook", "vögel"])),
        (f"{'deep/' * 20}geese.txt", ("geese.txt", [("deep/" * 20)[:64], "handbook"])),
    ],
)
def test_no_name_in_it_is_used_as_a_path(client: FlaskClient, name: str, shown: tuple[str, list[str]]) -> None:
    assert added(client, archive({name: "Geese."})) == [shown]


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("utf-8", ["Prüfung/Übersicht.txt", "報告.txt"]),
        ("cp437", ["Prüfung/Übersicht.txt"]),
        ("cp850", ["Ação.txt"]),
        ("cp866", ["Договор/акт сверки.txt"]),
        ("cp932", ["議事録/会議メモ.txt"]),
        ("gb18030", ["会议/合同文本.txt"]),
    ],
)
def test_names_that_do_not_tell_their_encoding_are_read(client: FlaskClient, encoding: str, names: list[str]) -> None:
    documents = added(client, named_in(encoding, {name: f"Geese of {name}." for name in names}))
    assert [name for name, _ in documents] == [name.rpartition("/")[2] for name in names]


def test_two_files_of_one_name_are_two_documents(client: FlaskClient) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = zipped(("geese.txt", "Geese."), ("geese.txt", "More geese."))
    assert added(client, content) == [("geese.txt", ["handbook"])] * 2


def test_an_archive_in_an_archive_is_unpacked_but_none_in_that(client: FlaskClient) -> None:
    innermost = archive({"x.txt": "Too deep."})
    inner = archive({"geese.txt": "Geese.", "more.zip": innermost, "swans.docx": a_docx(paragraph("Swans."))})
    answer = add(client, archive({"a/inner.zip": inner, "z.txt": "Swans fly."})).json
    assert [(one["name"], one["tags"]) for one in answer["documents"]] == [
        ("geese.txt", ["a/inner.zip", "handbook"]),
        ("swans.docx", ["a/inner.zip", "handbook"]),
        ("z.txt", ["handbook"]),
    ]
    reason = "It is an archive in an archive in this one. Unpack it and add its files."
    assert answer["refused"] == [{"name": "a/inner.zip/more.zip", "reason": reason}]


def locked(content: bytes, *names: str) -> bytes:
    """Return an archive in which these files are flagged as encrypted."""
    held = bytearray(content)
    for mark, flags_at, name_at in ((b"PK\x03\x04", 6, 30), (b"PK\x01\x02", 8, 46)):
        for name in names:
            start = next(
                at
                for at in range(len(held))
                if held.startswith(mark, at) and held.startswith(name.encode(), at + name_at)
            )
            held[start + flags_at] |= 1
    return bytes(held)


@pytest.mark.long
def test_what_is_locked_linked_or_too_large_is_named(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    link = zipfile.ZipInfo("link.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    content = locked(
        zipped(
            ("secret.txt", "Locked."),
            (link, "/etc/passwd"),
            ("bomb.txt", bytes(20_000_000)),
            (f"{'a/' * 25}deep.txt", "Deep."),
            ("large.txt", bytes(60_000_000)),
        ),
        "secret.txt",
    )
    assert refused(client, content) == {
        "secret.txt": "It has a password. Unpack it and add its files.",
        "link.txt": "It is a link.",
        "bomb.txt": "It is more than 200 times as large once unpacked.",
        f"{'a/' * 25}deep.txt": "It is in more than 20 folders.",
        "large.txt": "The file is larger than 50 MB, which is the limit.",
    }


def test_a_name_that_is_given_in_unicode_as_well_does_no_harm(client: FlaskClient) -> None:
    unicode_path = struct.pack("<BL", 1, zlib.crc32(b"pl_n.txt")) + "pl日n.txt".encode()
    member = zipfile.ZipInfo("pl_n.txt")
    member.extra = struct.pack("<HH", 0x7075, len(unicode_path)) + unicode_path  # Python reads it from 3.12 on.
    assert added(client, zipped((member, "Geese."))) == [("pl_n.txt", ["handbook"])]


def test_archives_in_one_count_as_what_is_unpacked(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 19_500_000)
    runs = b"".join(bytes([number]) * 200 for number in range(250))
    large = b"PK\x03\x04" + runs * 19 + zipped((zipfile.ZipInfo("empty/"), b""))
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("large.zip", large)
        # Each entry names the same bytes: as many as that unpack for minutes.
        written.filelist.extend(written.filelist * 29)
    answer = add(client, held.getvalue())
    assert [one["reason"] for one in answer.json["refused"]] == [
        *["The archive contains no files."] * 20,
        *["The archive is larger than 1,000 MB once unpacked. Split it."] * 10,
    ]


def test_a_damaged_file_is_named_and_what_lies_about_its_size_is_not_unpacked_beyond_it(client: FlaskClient) -> None:
    content = zipped(("a.txt", "Geese."), ("liar.txt", bytes(3_000_000)))
    small, large = struct.pack("<I", 50), struct.pack("<I", 3_000_000)
    assert content.count(large) == 2
    assert refused(client, content.replace(large, small)) == {"liar.txt": "It is damaged and cannot be unpacked."}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (locked(archive({"a.txt": "Geese."}), "a.txt"), "The archive has a password. Unpack it and add its files."),
        (archive({".DS_Store": "x"}), "The archive contains no files."),
        (archive({f"{n}.txt": f"{n}" for n in range(1001)}), "The archive contains more than 1000 files. Split it."),
        (archive({"a.txt": "Geese."})[:60], "It is damaged, cut off or not a ZIP archive."),
        (b"Geese.", "It is damaged, cut off or not a ZIP archive."),
    ],
    ids=["locked", "hidden", "many", "torn", "text"],
)
def test_an_archive_that_cannot_be_unpacked_is_refused(client: FlaskClient, content: bytes, sentence: str) -> None:
    answer = add(client, content)
    assert answer.status_code == 415
    assert answer.json["error"]["message"].startswith(sentence)
    assert client.get("/api/documents").json["documents"] == []


def test_a_document_that_is_named_zip_is_one_document(client: FlaskClient) -> None:
    assert added(client, a_docx(paragraph("Swans weigh twelve kilograms."))) == [("handbook.zip", [])]


def test_an_archive_replaces_no_document(client: FlaskClient) -> None:
    answer = add(client, archive({"a.txt": "Geese."}), replaces="1")
    assert answer.status_code == 422
    assert answer.json["error"]["message"] == "An archive cannot replace a document. Unpack it and add its file."


def test_the_form_of_the_page_unpacks_one_too(client: FlaskClient) -> None:
    files = [
        (io.BytesIO(archive({"a.txt": "Geese.", "b.bin": b"\x7fELF\0\0"})), "handbook.ZIP"),
        (io.BytesIO(b"Swans."), "swans.txt"),
    ]
    page = client.post("/documents", data={"file": files})
    assert page.status_code == 422
    assert "2 of 3 files added" in page.text
    assert {one["name"] for one in client.get("/api/documents").json["documents"]} == {"a.txt", "swans.txt"}
