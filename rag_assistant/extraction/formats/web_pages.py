"""The content of a web page, without site navigation: banners, menus, tables of contents. Pure.

HTML's landmarks (https://www.w3.org/TR/html-aam-1.0/) are recognised by name, menus by consisting of links.
"""

from __future__ import annotations

import html
import re

from msgspec import Struct

from rag_assistant.extraction.formats import DATA

# A tag, whose attributes may contain a quoted ">". Without backtracking: half a tag takes linear time.
TAG = re.compile(r"""<(/?)([a-z][a-z0-9:-]*+)((?:[^<>"']++|"[^"]*+"|'[^']*+')*+)>""", re.I)
PICTURE = re.compile(r"""<img\b((?:[^<>"']++|"[^"]*+"|'[^']*+')*+)>""", re.I)
ATTRIBUTE = re.compile(r"""([a-z-]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>]++))?""", re.I)
# Among them are those that may be left unclosed or are empty ("no_end"); the others have an end tag.
TAGS = {name: frozenset(tags.split()) for name, tags in DATA["tags"].items()}
CHROME_ROLES, CHROME_CLASSES = (frozenset(DATA[name].split()) for name in ("chrome_roles", "chrome_classes"))
COLONS = ":\uff1a"
# A menu has at least this many links, and hardly any text beside them.
MIN_LINKS = 3
MAX_SHARE_BESIDE_LINKS = 0.2
# Names aren't always right: the main part has at least this share of a page's text beside links, and navigation less.
MIN_SHARE_OF_MAIN = 0.6
MAX_SHARE_OF_CHROME = 0.5
# A page of which less is left was only a list of links.
MIN_CONTENT_CHARS = 100
# The text of an internal link that is only a mark: a note's number, a pilcrow, an arrow back.
MARK = re.compile(r"[\s\[\]()\d¶#§^*↑↩†‡]*|\s*\[?[a-z]\]?\s*")


class Element(Struct):
    """An element from ``start`` to ``end``, with the number of characters ``beside`` links and ``linked``.

    ``around`` are the enclosing tags. ``introduced`` is set if a colon or a heading precedes it.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    around: frozenset[str] = frozenset()
    introduced: str = ""
    end: int = 0
    beside: int = 0
    linked: int = 0
    links: int = 0
    inner_links: int = 0

    def add(self, other: Element) -> None:
        """Add the counts of an element within this one."""
        self.beside += other.beside
        self.linked += other.linked
        self.links += other.links
        self.inner_links += other.inner_links


def content_of(page: str) -> str:
    """Return the HTML of a page's content, with descriptions for pictures; all of it if little would be left."""
    page = PICTURE.sub(lambda match: f" {attributes_of(match[1]).get('alt', '')} ", page)
    whole, elements = _read(page)
    mains = [one for one in elements if one.tag in ("main", "article") or one.attributes.get("role") == "main"]
    main = max(mains, key=lambda one: one.beside, default=whole)
    if main.beside < MIN_SHARE_OF_MAIN * whole.beside:
        main = whole
    parts, position, left_out = [], main.start, Element("", {}, 0)
    for element in sorted(elements, key=lambda one: one.start):
        if position <= element.start < main.end and _is_left_out(element, whole, page):
            parts.append(page[position : element.start])
            position = element.end
            left_out.add(element)
    if main.beside + main.linked - left_out.beside - left_out.linked < MIN_CONTENT_CHARS < whole.beside + whole.linked:
        return page
    return " ".join([*parts, page[position : main.end]])


def _is_left_out(element: Element, whole: Element, page: str) -> bool:
    if element.tag == "a":
        shown = html.unescape(TAG.sub("", page[element.start : element.end]))
        return bool(element.inner_links and MARK.fullmatch(shown))
    if element.beside > MAX_SHARE_OF_CHROME * whole.beside:
        return False
    return _is_chrome(element) or _is_menu(element)


def _is_chrome(element: Element) -> bool:
    """Return whether an element's name says that it isn't content, or isn't shown."""
    attributes = element.attributes
    if element.tag in ("header", "footer", "aside") and not element.around & TAGS["sections"]:
        return True
    return (
        element.tag in TAGS["chrome"]
        or attributes.get("role") in CHROME_ROLES
        or "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or not CHROME_CLASSES.isdisjoint(attributes.get("class", "").split())
    )


def _is_menu(element: Element) -> bool:
    """Return whether an element is a list of links; one that the text introduces, or in a table, is content."""
    if element.tag not in TAGS["menus"] or element.links < MIN_LINKS:
        return False
    if element.introduced == "colon" or "table" in element.around:
        return False
    if element.introduced == "heading" and element.tag in TAGS["lists"] and element.inner_links < element.links:
        return False
    return element.beside <= MAX_SHARE_BESIDE_LINKS * (element.beside + element.linked)


def _read(page: str) -> tuple[Element, list[Element]]:
    """Return a page as one element, and all closed elements within it."""
    open_elements = [Element("", {}, 0)]
    closed: list[Element] = []
    position, introduced = 0, ""
    for match in TAG.finditer(page):
        text = page[position : match.start()].split()
        position = match.end()
        if text:
            open_elements[-1].beside += sum(map(len, text))
            introduced = "colon" if text[-1][-1] in COLONS else ""
        ends, tag = bool(match[1]), match[2].lower()
        if tag in TAGS["no_end"] or match[3].endswith("/"):
            continue
        if not ends:
            around = open_elements[-1].around | {open_elements[-1].tag}
            open_elements.append(Element(tag, attributes_of(match[3]), match.start(), around, introduced))
        elif tag in open_elements[-1].around or tag == open_elements[-1].tag:
            closed.append(_close(open_elements, tag, match.end()))
            introduced = "heading" if tag in TAGS["headings"] else introduced
    open_elements[-1].beside += sum(map(len, page[position:].split()))
    for element in open_elements[1:]:
        open_elements[0].add(element)
    open_elements[0].end = len(page)
    return open_elements[0], closed


def _close(open_elements: list[Element], tag: str, end: int) -> Element:
    """Close the innermost element with a tag, and what was left open in it."""
    while True:
        element = open_elements.pop()
        if element.tag == "a" and "href" in element.attributes:
            element.linked, element.beside = element.linked + element.beside, 0
            element.links, element.inner_links = 1, int(element.attributes["href"].startswith("#"))
        open_elements[-1].add(element)
        if element.tag == tag:
            element.end = end
            return element


def attributes_of(text: str) -> dict[str, str]:
    return {name.lower(): value.strip("\"'") for name, value in ATTRIBUTE.findall(text)}
