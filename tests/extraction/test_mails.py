"""What is attached to a mail is read with it; what cannot be read is named."""

from email.message import EmailMessage
from pathlib import Path

from rag_assistant.extraction.formats import kinds
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
        "Attachments that were not read, or only in part: broken.pdf, logo.png, without a name and 1 more. "
        "Add them separately."
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
    assert [level for level in range(8) if f"Level {level}." in found.text] == [4, 5, 6, 7]
    assert "### Attachment: 4.eml" in found.text
    assert found.warning == (
        "6.eml: 5.eml: 4.eml: Attachments that were not read, or only in part: 3.eml. Add them separately."
    )


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
        "2 of 3 mails could not be read, or not all that is attached to them."
    )


def test_a_mailbox_with_one_mail_is_that_mail(tmp_path: Path) -> None:
    mail = a_mail()
    assert read(tmp_path, in_a_mailbox(mail)).text == read(tmp_path, mail.as_bytes()).text


def test_what_is_attached_to_a_mail_of_outlook_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, (FILES / "msg_with_attachment.msg").read_bytes())
    assert found.text.endswith(
        "# Attachment: test.txt\n\nThis is a test attachment file.\nIt contains some dummy content."
    )
    assert found.warning == "Attachments that were not read, or only in part: report.pdf. Add them separately."


def test_a_mail_whose_attachments_cannot_all_be_found_says_so(tmp_path: Path) -> None:
    kinds_of_parts = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(1000))
    found = read(tmp_path, f"From: ann@example.org\nMIME-Version: 1.0\n{kinds_of_parts}\nText.\n")
    assert found.warning == "This mail is damaged: not all of its attachments could be found."


def test_a_text_in_an_unknown_encoding_is_read_as_any_file_is(tmp_path: Path) -> None:
    mail = a_mail()
    mail.add_attachment("Gänse", filename="geese.txt")
    content = mail.as_bytes().replace(b'charset="utf-8"', b'charset="none"')
    assert read(tmp_path, content).text.endswith("# Attachment: geese.txt\n\nGänse")


def test_a_real_mail_is_read_with_its_pdf(tmp_path: Path) -> None:
    found = read(tmp_path, shared("documents/tika/test-incremental-updates.eml").read_bytes())
    assert found.text.endswith("# Attachment: testPDF_incrementalUpdates.pdf\n\nTesting\nTesting Incremental")
