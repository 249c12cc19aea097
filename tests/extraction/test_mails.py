"""What is attached to a mail is read with it; what cannot be read is named."""

from base64 import encodebytes
from email.message import EmailMessage
from pathlib import Path
from quopri import encodestring

import pytest

from rag_assistant.extraction.formats import kinds
from rag_assistant.extraction.formats.mails import RTF_NOT_READ
from rag_assistant.records.documents import ExtractedText
from tests.extraction.archives import a_docx, paragraph
from tests.extraction.reading import read
from tests.testkit.shared_data import shared

FILES = Path(__file__).parent / "files"


def a_mail(text: str = "See attached.") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ann <ann@example.org>", "bob@example.org", "Geese"
    mail.set_content(text)
    return mail


def attach(mail: EmailMessage, name: str | None, content: bytes) -> None:
    mail.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)


def test_documents_are_read_below_headings_with_their_names(tmp_path: Path) -> None:
    mail = a_mail()
    styles = '<w:styles XMLNS><w:style w:styleId="1"><w:name w:val="heading 1"/></w:style></w:styles>'
    docx = a_docx(paragraph("Counting", '<w:pStyle w:val="1"/>') + paragraph("Seventeen geese."), styles=styles)
    attach(mail, "Zählung.docx", docx)
    attach(mail, "list.csv", b"bird,number\ngoose,17\n")
    attach(mail, "ducks.md", b"# Ducks\n\n```sh\n# count\n```\n")
    mail.add_attachment("# no heading\nGänse", charset="iso-8859-1", filename="notes.txt")
    found = read(tmp_path, mail.as_bytes())
    assert (found.media_type, found.markdown, found.warning) == (kinds.EML, True, None)
    _, text = found.text.split("See attached.\n\n")
    assert text == (
        "# Attachment: Zählung.docx\n\n## Counting\n\nSeventeen geese.\n\n"
        "# Attachment: list.csv\n\n| bird | number |\n| --- | --- |\n| goose | 17 |\n\n"
        "# Attachment: ducks.md\n\n## Ducks\n\n```sh\n# count\n```\n\n"
        "# Attachment: notes.txt\n\n\\# no heading\nGänse"
    )


def test_what_is_not_read_is_named_and_takes_nothing_with_it(tmp_path: Path) -> None:
    mail = a_mail()
    attach(mail, "broken.pdf", b"%PDF-1.7 nonsense")
    mail.add_attachment(
        b"\x89PNG\r\n\x1a\n", maintype="image", subtype="png", filename="logo.png", disposition="inline"
    )
    attach(mail, None, b"PK\x05\x06" + bytes(18))
    attach(mail, "all.tar.gz", b"\x1f\x8b" + bytes(9))
    mail.add_attachment("Seventeen.", filename="geese.txt")
    found = read(tmp_path, mail.as_bytes())
    assert found.text.endswith("# Attachment: geese.txt\n\nSeventeen.")
    assert found.warning == (
        "Attachments not read, or only partly: broken.pdf, logo.png, without a name and 1 more. Add them separately."
    )


def test_what_is_damaged_in_an_attachment_is_told_with_its_name(tmp_path: Path) -> None:
    mail = a_mail()
    attach(mail, "geese.txt", b"Seventeen g\xc3\xa4nse, " * 50 + b"\xff")
    assert read(tmp_path, mail.as_bytes()).warning == (
        "geese.txt: 1 character of this text could not be read: the file is damaged there."
    )


def test_an_attachment_is_named_by_what_can_be_shown_of_its_name(tmp_path: Path) -> None:
    mail = a_mail()
    mail.add_attachment("Seventeen.", filename="geese.txt")
    content = mail.as_bytes().replace(b'"geese.txt"', b'"g\xe4nse\t' + b"x" * 300 + b'"')
    found = read(tmp_path, content)
    assert "# Attachment: g\ufffdnse xxx" in found.text
    assert len(found.text) < 400


def test_a_signature_is_no_attachment(tmp_path: Path) -> None:
    mail = a_mail()
    mail.add_attachment(b"-----BEGIN PGP SIGNATURE-----", maintype="application", subtype="pgp-signature", filename="s")
    found = read(tmp_path, mail.as_bytes())
    assert (found.warning, "SIGNATURE" in found.text) == (None, False)


def test_a_forwarded_mail_is_read_with_what_is_attached_to_it(tmp_path: Path) -> None:
    forwarded = a_mail("Forwarded text.")
    forwarded.add_attachment("Seventeen.", filename="geese.txt")
    mail = a_mail()
    mail.add_attachment(forwarded)
    text = read(tmp_path, mail.as_bytes()).text
    assert "Forwarded text." in text
    assert text.endswith("# Attachment: geese.txt\n\nSeventeen.")


def test_mails_in_files_are_read_up_to_a_depth(tmp_path: Path) -> None:
    mail = a_mail("Level 0.")
    for level in range(1, 8):
        around = a_mail(f"Level {level}.")
        attach(around, f"{level - 1}.eml", mail.as_bytes())
        mail = around
    found = read(tmp_path, mail.as_bytes())
    assert [level for level in range(8) if f"Level {level}." in found.text] == [3, 4, 5, 6, 7]
    assert "### Attachment: 4.eml" in found.text
    assert found.warning == (
        "6.eml: 5.eml: 4.eml: 3.eml: Attachments not read, or only partly: 2.eml. Add them separately."
    )


def raw_mail(content_type: str, body: str | bytes, *fields: str, to: str = "To: bob@example.org\n") -> bytes:
    head = f"From: Ann <ann@example.org>\n{to}MIME-Version: 1.0\nContent-Type: {content_type}\n"
    body = body.encode() if isinstance(body, str) else body
    return (head + "".join(f"{one}\n" for one in fields) + "\n").encode() + body


def parts(*of: tuple[str, str]) -> str:
    return "".join(f"--b\nContent-Type: {kind}\n\n{text}\n" for kind, text in of) + "--b--\n"


def body_of(found: ExtractedText) -> str:
    """Return the text of a mail behind its fields."""
    return found.text.rpartition("bob@example.org\n\n")[2]


PAGE = (
    "<html><body><div>The gate closes at six.</div><div>Call Yusuf.</div><table><tr><td>Crane</td><td>9 t</td></tr>"
    "<tr><td>Lift</td><td>2 t</td></tr></table><ul><li>Helmet</li><li>Gloves</li></ul></body></html>"
)
PAGE_READ = (
    "The gate closes at six.\n\nCall Yusuf.\n\n| Crane | 9 t |\n| --- | --- |\n| Lift | 2 t |\n\n- Helmet\n- Gloves"
)


@pytest.mark.parametrize("is_in_mailbox", [False, True])
@pytest.mark.parametrize("encoding", ["8bit", "base64", "quoted-printable"])
def test_a_mail_that_is_a_page_is_read_as_that_page(tmp_path: Path, encoding: str, is_in_mailbox: bool) -> None:
    bodies = {"base64": encodebytes(PAGE.encode()), "quoted-printable": encodestring(PAGE.encode())}
    mail = raw_mail("text/html; charset=utf-8", bodies.get(encoding, PAGE), f"Content-Transfer-Encoding: {encoding}")
    content = b"From ann@example.org Thu Nov 26 10:00:00 2026\n" + mail if is_in_mailbox else mail
    assert body_of(read(tmp_path, content)) == PAGE_READ


@pytest.mark.parametrize(
    ("plain", "page", "words"),
    [
        ("Please view this message in HTML.", "<p>Invoice 8841 is due on 5 May, amount 230 euro.</p>", "Invoice 8841"),
        ("Invoice 8841,\ndue on 5 May.", "<p>Invoice <b>8841</b>, due on 5 May.</p>", "Invoice 8841,\ndue on 5 May."),
        ("", PAGE, "| Crane | 9 t |"),
    ],
)
def test_of_a_text_and_a_page_the_fuller_is_read(tmp_path: Path, plain: str, page: str, words: str) -> None:
    body = parts(("text/plain; charset=utf-8", plain), ("text/html; charset=utf-8", page))
    for boundary in ("boundary=b", 'boundary="b"', "boundary=b; x=1"):
        found = read(tmp_path, raw_mail(f"multipart/alternative; {boundary}", body))
        assert words in body_of(found)
        assert found.text.count("8841") <= 1
    odd = body.replace("--b", "------=_Part_1.2?3")
    assert words in read(tmp_path, raw_mail("multipart/alternative; boundary=----=_Part_1.2?3", odd)).text


@pytest.mark.parametrize(
    ("content_type", "body", "words"),
    [
        ("text/plain; charset=iso-2022-jp", "今日は晴れ".encode("iso2022_jp"), "今日は晴れ"),
        ("text/plain", "今日は晴れ".encode("iso2022_jp"), "今日は晴れ"),
        ("text/plain; charset=gb2312", "朱镕基和鄧".encode("gbk"), "朱镕基和鄧"),
        ("text/plain; charset=us-ascii", "Öffnungszeiten für Zürich".encode(), "Öffnungszeiten für Zürich"),
        ("text/plain; charset=iso-8859-1", "Öffnungszeiten".encode(), "Öffnungszeiten"),
        ("text/plain; charset=iso-8859-1", "5 € “or” less".encode("cp1252"), "5 € “or” less"),
        ("text/plain; charset=utf-8", "Søren møder på torsdag, ærligt".encode("latin-1"), "Søren møder"),
        ("text/plain; charset=shift_jis", "①晴れ".encode("cp932"), "①晴れ"),
        ("text/html", "<meta charset=iso-8859-1><p>Søren møder.".encode("latin-1"), "Søren møder"),
        ("text/html; charset=us-ascii", "<meta charset=iso-8859-1><p>Søren møder.".encode("latin-1"), "Søren møder"),
        ("text/html; charset=utf-8", "<meta charset=iso-8859-1><p>Søren møder.".encode(), "Søren møder"),
        ("text/plain; charset=unknown-8bit", "Öffnungszeiten".encode(), "Öffnungszeiten"),
    ],
)
def test_a_text_is_decoded_as_it_was_meant(tmp_path: Path, content_type: str, body: bytes, words: str) -> None:
    assert words in read(tmp_path, raw_mail(content_type, body, "Content-Transfer-Encoding: 8bit")).text


def test_lines_of_a_plain_mail_stay_lines(tmp_path: Path) -> None:
    text = "# Ann\n12 Quay Road\nLindau\n\n- rope\n- oil\n\nCrane    9 t\nLift     2 t"
    assert body_of(read(tmp_path, raw_mail("text/plain", text))) == "\\" + text
    flowed = "The gate closes \nat six.\n> quoted\n-- \nAnn"
    assert body_of(read(tmp_path, raw_mail("text/plain; format=flowed", flowed))) == (
        "The gate closes at six.\n> quoted\n-- \nAnn"
    )


def test_the_fields_of_a_mail_are_read_in_any_form(tmp_path: Path) -> None:
    for subject in ("Subject: =?iso-8859-1?Q?G=E4nse_*17*?=", "Subject: Gänse *17*"):
        found = read(tmp_path, raw_mail("text/plain", "Text.", subject, "Cc: Cy <cy@example.org>"))
        assert "**Subject**: Gänse \\*17\\*" in found.text
        assert "**From**: Ann \\<ann@example.org\\>" in found.text
        assert "**Cc**: Cy" in found.text


def test_a_mail_that_is_attached_tells_its_subject_and_its_sender(tmp_path: Path) -> None:
    mail, inner = a_mail(), a_mail("Forwarded text.")
    inner.replace_header("Subject", "Ducks")
    inner.replace_header("From", "cy@example.org")
    mail.add_attachment(inner)
    _, text = read(tmp_path, mail.as_bytes()).text.split("# Attachment: Ducks\n\n")
    assert "**Subject**: Ducks\n\n**From**: cy@example.org" in text
    assert text.endswith("Forwarded text.")


@pytest.mark.parametrize(
    "head",
    [
        "From: <Saved by Blink>\nSnapshot-Content-Location: https://example.org/\nSubject: Yard\n",
        "Date: Tue, 3 Mar 2026 09:00:00 +0100\nMessage-ID: <1@wiki>\nSubject: Exported From Confluence\n",
    ],
    ids=["mhtml", "wiki"],
)
def test_a_saved_page_is_a_page(tmp_path: Path, head: str) -> None:
    content = f'{head}MIME-Version: 1.0\nContent-Type: multipart/related; type="text/html"; boundary="b"\n\n'
    picture = "--b\nContent-Type: image/png\nContent-Location: a.png\n\nx\n--b--\n"
    found = read(tmp_path, content + parts(("text/html", PAGE)).replace("--b--\n", picture), "page.doc")
    assert (found.text, found.warning, found.media_type) == (PAGE_READ, None, kinds.HTML)


def in_a_mailbox(*mails: EmailMessage) -> bytes:
    return b"\n".join(b"From ann@example.org Thu Nov 26 10:00:00 2026\n" + mail.as_bytes() + b"\n" for mail in mails)


def test_each_mail_of_a_mailbox_is_read_below_its_subject(tmp_path: Path) -> None:
    mail, another = a_mail("Seventeen.\n\n>From here they flew."), a_mail("Another.")
    another.add_attachment("Eighteen.", filename="geese.txt")
    another.replace_header("Subject", "Ducks")
    found = read(tmp_path, in_a_mailbox(mail, another))
    assert (found.media_type, found.markdown, found.warning) == (kinds.MBOX, True, None)
    first, second = found.text.split("# Ducks\n\n")
    assert first.startswith("# Geese\n\n**Subject**: Geese")
    assert "From here they flew." in first
    assert "Another." in second
    assert second.endswith("## Attachment: geese.txt\n\nEighteen.")


def test_a_mailbox_says_how_many_of_its_mails_are_not_whole(tmp_path: Path) -> None:
    mail = a_mail()
    attach(mail, "broken.pdf", b"%PDF-1.7 nonsense")
    assert read(tmp_path, in_a_mailbox(mail, a_mail(), mail)).warning == (
        "2 of 3 emails, or some of their attachments, could not be read."
    )


def test_a_mailbox_with_one_mail_is_that_mail(tmp_path: Path) -> None:
    mail = a_mail()
    assert read(tmp_path, in_a_mailbox(mail)).text == read(tmp_path, mail.as_bytes()).text


def test_what_is_attached_to_a_mail_of_outlook_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, (FILES / "msg_with_attachment.msg").read_bytes())
    assert found.text.endswith(
        "# Attachment: test.txt\n\nThis is a test attachment file.\nIt contains some dummy content."
    )
    assert found.warning == "Attachments not read, or only partly: report.pdf. Add them separately."


def test_a_mail_of_outlook_that_has_its_text_only_as_a_page_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, (FILES / "msg_html_only.msg").read_bytes())
    assert "The crane was inspected on 2 March.\n\n| Part | State |" in found.text
    assert "| Rope | good für sechs Monate |" in found.text
    assert found.warning is None


def test_a_mail_of_outlook_whose_text_is_not_read_says_so(tmp_path: Path) -> None:
    found = read(tmp_path, shared("documents/unstructured/fake-encrypted.msg").read_bytes())
    assert found.warning == RTF_NOT_READ


@pytest.mark.long
def test_a_mail_whose_attachments_cannot_all_be_found_says_so(tmp_path: Path) -> None:
    kinds_of_parts = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(1000))
    found = read(tmp_path, f"From: ann@example.org\nMIME-Version: 1.0\n{kinds_of_parts}\nText.\n")
    assert found.warning == "This email is damaged: not all of its attachments could be found."


def test_a_text_in_an_unknown_encoding_is_read_as_any_file_is(tmp_path: Path) -> None:
    mail = a_mail()
    mail.add_attachment("Gänse", filename="geese.txt")
    content = mail.as_bytes().replace(b'charset="utf-8"', b'charset="none"')
    assert read(tmp_path, content).text.endswith("# Attachment: geese.txt\n\nGänse")


def test_a_real_mail_is_read_with_its_pdf(tmp_path: Path) -> None:
    found = read(tmp_path, shared("documents/tika/test-incremental-updates.eml").read_bytes())
    assert found.text.endswith("# Attachment: testPDF_incrementalUpdates.pdf\n\nTesting\nTesting Incremental")
