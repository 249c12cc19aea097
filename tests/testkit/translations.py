"""Updates the catalogs of the page from templates, scripts and code: python -m tests.testkit.translations."""

import ast
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

from rag_assistant.web.i18n.catalogs import catalog_path
from rag_assistant.web.i18n.languages import TRANSLATED, Language
from tests.testkit.spoken import every_sentence, sentences

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "rag_assistant"
TEMPLATES = {"_": None, "ngettext": (1, 2)}
SCRIPTS = {"t": None, "tn": (1, 2)}
CODE = ("N_", "gettext", "ngettext")

# A text, or singular and plural.
Text = str | tuple[str, ...]


def source() -> Catalog:
    """Return every text of the page, with its files."""
    found = Catalog(charset="utf-8")
    for path, text in sorted(every_text(), key=lambda pair: (pair[0], str(pair[1]))):
        found.add(text, locations=[(path, None)])  # type: ignore[list-item]
    return found


@cache
def every_text() -> frozenset[tuple[str, Text]]:
    """Return the texts of templates, scripts and code, each with its file."""
    return frozenset((*in_templates(), *in_scripts(), *in_code()))


def in_templates() -> Iterator[tuple[str, Text]]:
    """Yield the texts of the templates."""
    for path in sorted((PROJECT / "templates").glob("*.html")):
        for _, function, message, _ in babel_extract(BytesIO(path.read_bytes()), list(TEMPLATES), (), {}):
            yield from ((_named(path), text) for text in _texts(function, message))


def in_scripts() -> Iterator[tuple[str, Text]]:
    """Yield the texts of the scripts."""
    for path in sorted((PROJECT / "static" / "js").rglob("*.js")):
        code, within_texts = BytesIO(path.read_bytes()), {"parse_template_string": True}
        for _, message, _, _ in extract("javascript", code, SCRIPTS, options=within_texts):
            yield _named(path), message


def in_code() -> Iterator[tuple[str, Text]]:
    """Yield the sentences of the code, and its marked texts."""
    yield from ((_named(path), sentence) for path, sentence in sentences())
    for path in sorted(PACKAGE.rglob("*.py")):
        code = path.read_text()
        if not any(f"{name}(" in code for name in CODE):
            continue
        # Without Babel, which doesn't look into the expressions of an f-string.
        for call in ast.walk(ast.parse(code)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in CODE:
                texts = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                yield from ((_named(path), text) for text in _texts(call.func.id, tuple(texts)))


def _texts(function: str | None, message: str | tuple[str | None, ...] | None) -> Iterator[Text]:
    """Yield the literal texts of a translation call in a template."""
    texts = (message,) if isinstance(message, str) else message or (None,)
    if function == "ngettext" and texts[1:]:
        yield str(texts[0]), str(texts[1])
    elif function != "ngettext" and texts[0]:
        yield texts[0]


def _named(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def renew(language: Language, texts: Catalog) -> Catalog:
    """Return a language's catalog updated to the current texts, keeping translations."""
    known = _catalog_file(language)
    known.update(texts, no_fuzzy_matching=True, update_creation_date=False)
    known.obsolete.clear()
    return known


def _catalog_file(language: Language) -> Catalog:
    """Return a language's catalog from its file; an empty one if there is none yet."""
    path = catalog_path(language)
    if path.exists():
        return read_po(BytesIO(path.read_bytes()), locale=language.locale)
    return Catalog(locale=language.locale, project="rag-assistant", charset="utf-8", fuzzy=False)


def still_said(texts: Catalog) -> list[tuple[str, str]]:
    """Return translated texts that now only occur in files not known to speak to people, with such a file.

    This happens when code moves to a new file; the update would lose its translations.
    """
    known = {message.id for language in TRANSLATED for message in _catalog_file(language)}
    return [(_named(path), text) for path, text in every_sentence() if text in known and text not in texts]


def missing(known: Catalog) -> list[str]:
    """Return the untranslated texts of a catalog."""
    return [str(message.id) for message in known if message.id and not is_whole(message)]


def is_whole(message: Message) -> bool:
    """Return whether a text is translated in all its forms."""
    forms = message.string if isinstance(message.string, tuple) else (message.string,)
    return all(forms)


def as_file(known: Catalog) -> str:
    """Return a catalog as a file: its comment with the glossary, the header, the texts."""
    body = BytesIO()
    write_po(body, known, width=120, omit_header=True, sort_by_file=True, include_lineno=False)
    needed = ("Language", "Plural-Forms", "Content-Type")
    header = "".join(f'"{name}: {value}\\n"\n' for name, value in known.mime_headers if name in needed)
    return f'{known.header_comment}\nmsgid ""\nmsgstr ""\n{header}\n{body.getvalue().decode().lstrip()}'


def main() -> int:
    """Update the catalogs, and list what is missing in each; leave them alone if a translation would be lost."""
    texts, lacking = source(), 0
    if lost := still_said(texts):
        print("Name these files in SPEAKING of tests/testkit/spoken.py, or what they say in NOT_FOR_PEOPLE:")
        print("\n".join(f"{path}: {text}" for path, text in lost))
        return 1
    for language in TRANSLATED:
        before = {str(message.id): message.string for message in _catalog_file(language)}
        known = renew(language, texts)
        catalog_path(language).write_text(as_file(known))
        gone = sorted(before.keys() - {str(message.id) for message in known})
        for text in missing(known):
            former = "".join(get_close_matches(text, gone, 1))
            print(f"{language.code}: no translation of: {text}" + f"\n    before: {before[former]}" * bool(former))
            lacking += 1
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
