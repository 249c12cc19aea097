"""Make documents that are ZIP archives of XML, honest and hostile ones."""

import io
import zipfile
from collections.abc import Mapping

PREFIXES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" '
    'xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"'
)
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
LAUGHS = (
    "<!DOCTYPE x [<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12)) + "]>"
)


def archive(parts: Mapping[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", compression, compresslevel=1) as written:
        for name, content in parts.items():
            written.writestr(name, content)
    return held.getvalue()


def relations(*targets: tuple[str, str]) -> str:
    rows = "".join(
        f'<Relationship Id="r{number}" Type="{RELATIONS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f"<Relationships>{rows}</Relationships>"


def a_docx(body: str, **parts: str) -> bytes:
    """Return a DOCX with this body; further parts are named without their folder and ending."""
    return archive(
        {
            "_rels/.rels": relations(("officeDocument", "word/document.xml")),
            "word/document.xml": f"<w:document {PREFIXES}><w:body>{body}</w:body></w:document>",
            **{f"word/{name}.xml": content.replace("XMLNS", PREFIXES) for name, content in parts.items()},
        }
    )


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def shape(text: str, placeholder: str | None = None) -> str:
    kind = f'<p:ph type="{placeholder}"/>' if placeholder else ""
    runs = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp><p:nvSpPr><p:nvPr>{kind}</p:nvPr></p:nvSpPr><p:txBody>{runs}</p:txBody></p:sp>"


def a_pptx(*slides: str | bytes, **parts: str) -> bytes:
    """Return a PPTX with these shapes on its slides; ``parts`` are added as they are, dots written as two lines."""
    numbers = range(1, len(slides) + 1)
    ids = "".join(f'<p:sldId r:id="r{number}"/>' for number in numbers)
    named: dict[str, str | bytes] = {
        f"ppt/slides/slide{number}.xml": slide
        if isinstance(slide, bytes)
        else f"<p:sld {PREFIXES}><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>"
        for number, slide in zip(numbers, slides, strict=True)
    }
    return archive(
        {
            "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": f"<p:presentation {PREFIXES}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(
                *(("slide", f"slides/slide{number}.xml") for number in numbers)
            ),
            **named,
            **parts,
        }
    )


def an_opendocument(kind: str, body: str, **parts: str) -> bytes:
    return archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:content {ODF}><office:body>{body}</office:body></office:content>",
            **parts,
        },
        zipfile.ZIP_STORED,
    )


def an_epub(chapter: str) -> bytes:
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles>'
            "</container>",
            "book.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/><manifest>'
            '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="c"/></spine></package>',
            "c.xhtml": chapter,
        },
        zipfile.ZIP_STORED,
    )


def an_xlsx(sheet: str | bytes, **parts: str) -> bytes:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    return archive(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="xml" ContentType="application/xml"/>'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/>'
            f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{types}.worksheet+xml"/></Types>',
            "_rels/.rels": relations(("officeDocument", "xl/workbook.xml")).replace(
                "<Relationships", '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
            ),
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{RELATIONS}"><sheets>'
            '<sheet name="Prices" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(("worksheet", "worksheets/sheet1.xml")).replace(
                "<Relationships", '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
            ),
            "xl/worksheets/sheet1.xml": sheet,
            **parts,
        }
    )


def a_sheet(*rows: tuple[str, ...]) -> str:
    cells = "".join(
        f'<row r="{number}">'
        + "".join(
            f'<c r="{"ABCDEF"[place]}{number}" t="inlineStr"><is><t>{text}</t></is></c>'
            for place, text in enumerate(row)
        )
        + "</row>"
        for number, row in enumerate(rows, 1)
    )
    return (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f"<sheetData>{cells}</sheetData></worksheet>"
    )


def lying_archive(name: str, content: bytes, **others: str) -> bytes:
    """Return an archive that says of this member that it is small."""
    whole = bytearray(archive({**others, name: content}))
    size, lie = len(content).to_bytes(4, "little"), (100).to_bytes(4, "little")
    return bytes(whole.replace(size, lie))


def a_quine() -> bytes:
    """Return an archive whose only member is found, under its own name, again and again where it begins."""
    member = archive({"word/document.xml": b"x" * 1_000_000})
    end = member.rfind(b"PK\x05\x06")
    start = int.from_bytes(member[end + 16 : end + 20], "little")
    entry = member[start:end]
    count = 5000
    directory = entry * count
    tail = (
        b"PK\x05\x06\0\0\0\0"
        + count.to_bytes(2, "little") * 2
        + len(directory).to_bytes(4, "little")
        + start.to_bytes(4, "little")
        + b"\0\0"
    )
    return member[:start] + directory + tail
