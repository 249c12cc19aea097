"""Open documents that are ZIP archives of XML, with a limit on unpacked size, and without expanding entities.

And what several formats have in common: the date among their properties, and charts.
"""

import io
import posixpath
import re
import zipfile
import zlib
from contextlib import suppress
from datetime import date
from xml.etree import ElementTree

from rag_assistant.extraction.formats.kinds import SUPPORTED, kind_of_package
from rag_assistant.extraction.formats.markup import table
from rag_assistant.records.errors import ExtractionFailed

MAX_INFLATED_BYTES = 100_000_000
MAX_MEMBERS = 20_000
ENTITIES = "This file defines XML entities, which can expand without limit, so it was not read."
XML_NAMES = (".xml", ".rels", ".opf", ".ncx")
PAGE_NAMES = (".xhtml", ".html", ".htm")
RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
# Pictures and films are never unpacked, so their size doesn't count.
NEVER_UNPACKED = (".png", ".jpg", ".jpeg", ".gif", ".emf", ".wmf", ".tif", ".tiff", ".mp4", ".mp3", ".wav", ".ttf")
BROKEN = (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, OSError, ValueError, zlib.error)

Element = ElementTree.Element


class Package:
    """A ZIP archive of XML parts. ``unread`` names the requested parts that are broken."""

    def __init__(self, content: bytes) -> None:
        """Open it. Raises ExtractionFailed if it is broken, encrypted, or too large when unpacked."""
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except BROKEN as error:
            raise ExtractionFailed(
                "This file is damaged and cannot be opened: it is cut off or not a ZIP archive."
            ) from error
        # Some Windows programs use backslashes in paths.
        self._members = {name.replace("\\", "/"): name for name in self._archive.namelist()}
        self.names = set(self._members)
        self.unread: list[str] = []
        self._left = MAX_INFLATED_BYTES
        self._check()

    @property
    def kind(self) -> str:
        """The media type of the document. Raises ExtractionFailed if it isn't one."""
        mimetype = self.read("mimetype")[:200].decode("ascii", "replace") if "mimetype" in self.names else ""
        kind = kind_of_package(self.names, mimetype)
        if kind is not None:
            return kind
        if any(name.startswith("Index/") or name == "index.apxl" or name == "index.xml" for name in self.names):
            raise ExtractionFailed("This is a Pages, Numbers or Keynote file. Export it as PDF or DOCX and add that.")
        files = "1 file" if len(self.names) == 1 else f"{len(self.names)} files"
        raise ExtractionFailed(
            f"This ZIP archive contains {files} but isn't a document. Unpack it and add the files. "
            f"Supported formats: {SUPPORTED}."
        )

    def read(self, name: str) -> bytes:
        """Return a member. Raises ExtractionFailed if it is broken or too much has been unpacked."""
        try:
            with self._archive.open(self._members[name]) as member:
                content = member.read(self._left + 1)
        except (*BROKEN, KeyError, RuntimeError) as error:
            raise ExtractionFailed("This file is damaged: a part of it cannot be unpacked.") from error
        self._left -= len(content)
        if self._left < 0:
            raise _too_large()
        return content

    def xml(self, name: str) -> Element:
        """Return a parsed part. Raises ExtractionFailed if it is missing or broken, or defines entities."""
        return parsed(self.read(name))

    def optional(self, name: str) -> Element | None:
        """Return a parsed part, ``None`` if it is missing or broken; a broken one is added to ``unread``."""
        if name not in self.names:
            return None
        try:
            return self.xml(name)
        except ExtractionFailed:
            self.unread.append(name)
            return None

    def parts(self, start: str) -> list[Element]:
        """Return the readable XML parts with a name prefix, sorted by name."""
        names = sorted(name for name in self.names if name.startswith(start) and name.endswith(".xml"))
        return [part for name in names if (part := self.optional(name)) is not None]

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """Return type and target of each relationship of an OOXML part, by id."""
        folder, file = posixpath.split(name)
        root = self.optional(f"{folder}/_rels/{file}.rels" if folder else f"_rels/{file}.rels")
        relations = {}
        for relation in root if root is not None else ():
            target = relation.get("Target", "")
            whole = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
            kind = relation.get("Type", "").rsplit("/", 1)[-1]
            relations[relation.get("Id", "")] = (kind, posixpath.normpath(whole))
        return relations

    def main_part(self) -> str:
        """Return the name of an OOXML document's main part. Raises ExtractionFailed."""
        for kind, target in self.relations("").values():
            if kind == "officeDocument" and target in self.names:
                return target
        raise ExtractionFailed("This file is damaged: its main part is missing.")

    @property
    def date(self) -> str | None:
        """The date in its properties: when it was last changed, or made."""
        stamps: dict[str, str | None] = {}
        for name in ("docProps/core.xml", "meta.xml"):
            with suppress(ExtractionFailed):
                stamps |= {local(one): one.text for one in self.xml(name).iter()}
        return date_in(*map(stamps.get, ("modified", "date", "created", "creation-date")))

    def unpack_in_vain(self) -> None:
        """Unpack everything that a library would. Raises ExtractionFailed if that fails, is larger than declared, or
        defines entities.
        """
        for name in sorted(self.names):
            if name.lower().endswith((*XML_NAMES, *PAGE_NAMES)):
                content = self.read(name)
                # Pages of old books use harmless character entities.
                if name.lower().endswith(XML_NAMES):
                    refuse_entities(content)

    def _check(self) -> None:
        members = self._archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise ExtractionFailed(f"This file has {len(members)} parts; at most {MAX_MEMBERS} are unpacked.")
        if any(member.flag_bits & 1 for member in members):
            raise ExtractionFailed("This file has a password. Save it without one and add it again.")
        counted = [member for member in members if not member.filename.lower().endswith(NEVER_UNPACKED)]
        if sum(member.file_size for member in counted) > MAX_INFLATED_BYTES:
            raise _too_large()


def refuse_entities(content: bytes) -> None:
    """Raise ExtractionFailed for an XML file that defines entities."""
    if b"<!ENTITY" in content.replace(b"\0", b""):  # In UTF-16, too.
        raise ExtractionFailed(ENTITIES)


def parsed(content: bytes) -> Element:
    """Return the root of an XML file. Raises ExtractionFailed if it is broken or defines entities."""
    refuse_entities(content)
    try:
        return ElementTree.fromstring(content)  # noqa: S314 - bounded, without entities, in a child under limits
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ExtractionFailed("This file is damaged: a part of it is not well-formed XML.") from error


def local(element: Element) -> str:
    """Return an element's name without its namespace."""
    return str(element.tag).rsplit("}", 1)[-1]


def attribute(element: Element, name: str) -> str | None:
    """Return an attribute by its name without a namespace."""
    return next((value for key, value in element.attrib.items() if key.rsplit("}", 1)[-1] == name), None)


def number(text: str | None, otherwise: int = 0) -> int:
    """Return a part's whole number; ``otherwise`` if it is missing or implausible."""
    return int(text) if text and text.isdigit() and len(text) < 8 else otherwise


def _too_large() -> ExtractionFailed:
    return ExtractionFailed(f"This file is too large once unpacked: more than {MAX_INFLATED_BYTES // 1_000_000} MB.")


# As ISO 8601 and PDF have it: 2024-05-31T10:00:00Z, D:20240531100000.
STAMP = re.compile(r"\s*(?:D:)?(\d{4})-?(\d\d)-?(\d\d)")
# Earlier ones are the beginning of some calendar.
MIN_YEAR = 1985
# Of the empty files that come with python-docx and python-pptx: what is made with these keeps their times.
TEMPLATES = ("2013-12-23T23:15:00Z", "2013-01-27T09:14:16Z", "2013-01-27T09:15:58Z")


def date_in(*stamps: str | None) -> str | None:
    """Return the day of the first plausible time among some, in ISO 8601."""
    for match in (STAMP.match(stamp or "") for stamp in stamps if stamp not in TEMPLATES):
        try:
            day = date(*map(int, match.groups())) if match else None
        except ValueError:
            continue
        if day and day.year >= MIN_YEAR and day <= date.today():
            return day.isoformat()
    return None


def charts_of(roots: list[Element]) -> list[str]:
    """Return of each chart the title, and the figures behind it as a table."""
    blocks: list[str] = []
    for root in roots:
        title = root.find(".//{*}title")
        text = "".join(part.text or "" for part in title.findall(".//{*}t")) if title is not None else ""
        blocks += [f"Chart: {text}" if text else "", _figures(root)]
    return blocks


def _figures(root: Element) -> str:
    """Return one row for each category and one column for each series."""
    head, rows = [""], dict[int, list[str]]()
    for number, series in enumerate(root.findall(".//{*}ser"), 1):
        parts = {local(part): _points(part) for part in series}
        head.append(" ".join(parts.get("tx", {}).values()))
        names = parts.get("cat") or parts.get("xVal") or {}
        values = parts.get("val") or parts.get("yVal") or {}
        for index in sorted(names.keys() | values.keys()):
            row = rows.setdefault(index, [names.get(index, "")])
            row += [""] * (number - len(row)) + [values.get(index, "")]
    return table([head, *(rows[index] for index in sorted(rows))])


def _points(element: Element) -> dict[int, str]:
    points: dict[int, str] = {}
    for point in element.iter():
        if local(point) in ("pt", "tx"):
            value, index = point.findtext("{*}v"), point.get("idx", "0")
            if value and index.isdigit():
                points[int(index)] = value
    return points
