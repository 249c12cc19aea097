"""What people would see in English in every language: texts of templates and scripts that no catalog is asked for."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from jinja2 import Environment, nodes

# What people hear or see of an attribute.
ATTRIBUTES = ("title", "aria-label", "placeholder", "alt", "data-title", "data-copied")
# What is read as it is: code, keys, and what is said in English on purpose.
LITERAL = ("code", "kbd", "pre", "script", "style", "noscript")
# Names, and examples of what one types.
NAMES = ("Assistant", "Markdown", "JSON", "https://example.org/page", "aria-", "OPENAI_API_KEY=your-key")
# What one types into a field.
TYPED = ("all",)
WORD = re.compile(r"[A-Za-z]{2}")


class Visible(HTMLParser):
    """Collects what is to be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in LITERAL:
            self._open.append(tag)
        self.found += [value for name, value in attrs if name in ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not self._open:
            self.found.append(data)


def untranslated_of_template(source: str) -> list[str]:
    """Return the texts of a template that are not passed through ``_`` or ``ngettext``."""
    page = Visible()
    page.feed("".join(_written(Environment(autoescape=True).parse(source))))
    page.close()
    return [text.strip() for text in page.found if _says_something(text)]


def _written(node: nodes.Node) -> Iterator[str]:
    """Yield what a template writes for itself, the words in its expressions among them."""
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.TemplateData):
            yield child.data
        elif isinstance(child, nodes.Output):
            yield from _written(child)
        elif isinstance(child, nodes.Expr):
            if isinstance(node, nodes.Output):
                yield "".join(_literals(child))
        else:
            yield from _written(child)


def _literals(node: nodes.Expr) -> Iterator[str]:
    """Yield the texts that an expression may give."""
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, nodes.CondExpr):
        for way in (node.expr1, node.expr2):
            if way is not None:
                yield from _literals(way)
    elif isinstance(node, nodes.Concat):
        for part in node.nodes:
            yield from _literals(part)
    elif isinstance(node, nodes.Or | nodes.And | nodes.Add):
        yield from _literals(node.left)
        yield from _literals(node.right)


def untranslated_of_script(source: str) -> list[str]:
    """Return the texts of a script that are not passed through ``t`` or ``tn``."""
    code = re.sub(r"/\*.*?\*/|^\s*//.*$|^import .*$", "", source, flags=re.DOTALL | re.MULTILINE)
    code = re.sub(r"""\btn?\((?:\s*"(?:[^"\\]|\\.)*",?)+""", "", code)
    texts = re.findall(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', code)
    sentences = [one or other for one, other in texts if SENTENCE.match(re.sub(r"\$\{[^}]*\}", "", one or other))]
    shown = re.findall(r'(?:textContent|title|placeholder) = "([^"]*[A-Za-z]{2}[^"]*)"', code)
    return sentences + shown


# A capital, then words apart: no selector, no name of an event or of a class reads like that.
SENTENCE = re.compile(r"[“A-Z]\w*(?:\u2019\w+)?,? [\w ,]*[a-z]")


def _says_something(text: str) -> bool:
    if text.strip() in TYPED:
        return False
    for name in NAMES:
        text = text.replace(name, "")
    return WORD.search(text) is not None
