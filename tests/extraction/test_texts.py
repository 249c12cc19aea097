"""Text in any encoding stays as it is, and what is no text is refused at once."""

from pathlib import Path

import pytest

from rag_assistant.extraction.formats import kinds
from rag_assistant.extraction.formats.kinds import media_type_of
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed, UnsupportedDocument
from tests.extraction.reading import read


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_is_read_in_every_unicode_encoding(tmp_path: Path, encoding: str) -> None:
    text = "Seventeen geese, naïve ones.\n" * 20
    assert read(tmp_path, text.encode(encoding)) == ExtractedText(text, kinds.PLAIN)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("windows-1251", "Смотритель маяка кормит семнадцать гусей каждое утро. "),
        ("shift_jis", "灯台守は毎朝十七羽のガチョウに餌をやります。"),
        ("gb18030", "灯塔看守人每天早上喂十七只鹅。他很喜欢它们。"),
        ("windows-1252", "Le gardien du phare nourrit dix-sept oies à l'aube, très tôt, là-bas. "),
        ("windows-1252", "El niño comió piña en la mañana, ¿verdad? Sí, señor. "),
        ("cp866", "Однажды, в студеную зимнюю пору, я из лесу вышел; был сильный мороз. "),
        ("windows-1250", "Příliš žluťoučký kůň úpěl ďábelské ódy. "),
    ],
)
def test_text_is_read_in_old_encodings(tmp_path: Path, encoding: str, text: str) -> None:
    assert read(tmp_path, (text * 20).encode(encoding)).text == text * 20


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("gb18030", "你好"), ("gb18030", "客户名单"), ("shift_jis", "テスト"), ("shift_jis", "今日は晴れ"),
        ("big5", "你好世界"),
        ("mac-roman", "Café déjà vu, über die Brücke"), ("windows-1252", "Søren møder på torsdag"),
        ("windows-1252", "für"), ("windows-1252", "5 € “or” less"), ("iso8859-2", "Zażółć gęślą jaźń"),
        ("iso2022_jp", "今日は晴れ"),
    ],
)  # fmt: skip
def test_a_short_text_is_read_and_a_guess_is_told(tmp_path: Path, encoding: str, text: str) -> None:
    extracted = read(tmp_path, text.encode(encoding))
    assert extracted.text == text
    if text in ("für", "你好"):
        assert "This text does not declare its encoding; it was read as" in str(extracted.warning)


def test_a_guess_that_may_be_wrong_is_told(tmp_path: Path) -> None:
    katakana = read(tmp_path, "ｶﾀｶﾅ ﾃｽﾄ".encode("shift_jis"))
    assert katakana.text == "ｶﾀｶﾅ ﾃｽﾄ"
    assert "it was read as cp932" in str(katakana.warning)
    text = "Der Käse wird jede Woche geprüft, das Öl zweimal täglich, und für Gruppen größer als zehn ist geöffnet."
    assert read(tmp_path, (text * 3).encode("windows-1252")) == ExtractedText(text * 3, kinds.PLAIN)


def test_bytes_that_are_text_in_no_encoding_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExtractionFailed, match="encoding of this text could not be recognised"):
        read(tmp_path, bytes([0x81, 0xFF, 0xA0, 0xB1, 0xFD, 0x20] * 40))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("The café serves naïve soup.\nBroken ".encode() + b"\x92" + " byte. Später gibt es Käse.".encode(), "Käse."),
        ("Gänse und Kä".encode()[:-1], "Gänse und K"),
        ("今日は晴れ".encode()[:-1], "今日は晴"),
    ],
    ids=["a stray byte", "cut in mid-character", "cut in mid-character, Japanese"],
)
def test_a_short_text_with_damage_stays_utf8(tmp_path: Path, content: bytes, words: str) -> None:
    extracted = read(tmp_path, content)
    assert words in extracted.text
    assert extracted.warning == "1 character of this text could not be read: the file is damaged there."


def test_a_declared_encoding_is_believed(tmp_path: Path) -> None:
    text = "<?xml version='1.0' encoding='iso-8859-2'?><a>zażółć gęślą</a>"
    assert read(tmp_path, text.encode("iso-8859-2")).text == text


def test_a_few_bad_bytes_are_told_and_do_not_spoil_the_rest(tmp_path: Path) -> None:
    extracted = read(tmp_path, ("Größe und Gänse. " * 50).encode() + b"\xff" + b" Ende.")
    assert extracted.text.startswith("Größe und Gänse.")
    assert extracted.warning == "1 character of this text could not be read: the file is damaged there."


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "def goose():\n\treturn '# no heading'\n"),
        ("a.rst", "Geese\n=====\n\n* one\n"),
        ("a.org", "* Geese\n** Ducks\n"),
        ("a.adoc", "= Geese\n\n. one\n"),
        ("a.json", '{"geese": 17}'),
        ("a.xml", "<?xml version='1.0'?>\n<geese n='17'/>\n"),
        ("a.svg", "<svg><text>geese</text></svg>"),
        ("mz", "MZ is what this begins with, and BM is not far.\n"),
        ("letter.txt", "From a@b I heard this:\nNote: it is no mailbox.\n"),
        ("headers.txt", "Note: this is no mail.\nSubject: neither is this.\n"),
    ],
)
def test_source_code_and_plain_text_stay_as_they_are(tmp_path: Path, name: str, text: str) -> None:
    assert read(tmp_path, text, name) == ExtractedText(text, kinds.PLAIN)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"GIF89a\x10\0\x10\0", "is an image"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "is audio or video"),
        (b"\x7fELF\2\1\1\0", "is a program"),
        (b"MZ\x90\0\3\0\0\0", "is a program"),
        (b"\x1f\x8b\x08\0\0", "is an archive, which has no text to read. Unpack it"),
        (b"SQLite format 3\0", "is a database"),
        (b"a" * 257 + b"ustar\0", "is an archive, which has no text to read. Unpack it"),
        (b"\1\2\3\4\5\6\7\x0e\x0f\x10" * 9, "isn't a supported file type. Supported formats: text, Markdown"),
        (b"some\0binary\0\0thing", "isn't a supported file type"),
    ],
)
def test_what_holds_no_text_is_refused_at_once(content: bytes, words: str) -> None:
    with pytest.raises(UnsupportedDocument, match=f'"x.docx" {words}'):
        media_type_of(content, "x.docx")
