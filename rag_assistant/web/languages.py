"""The language of a request, and translation in templates.

A page follows the reader's choice, or the setting ``page_language``, which defaults to the browser's preference. So do
API responses to our pages; for everybody else the API speaks English.
"""

from typing import Any
from urllib.parse import urlsplit

from babel.numbers import format_decimal
from flask import Flask, Response, g, has_request_context, json, request
from markupsafe import Markup, escape

from rag_assistant.web.i18n.catalogs import translate, translations
from rag_assistant.web.i18n.languages import ENGLISH, LANGUAGES, Language
from rag_assistant.web.routing import FOR_PROGRAMS, whole_services

LANGUAGE_COOKIE = "language"
AUTO = "auto"
# Parsing thousands of languages, which no browser sends, takes longer than the page.
MAX_ACCEPTED_CHARS = 1000
# API fields with sentences for people, such as a command's result, and a document's reason.
SENTENCES = frozenset({"message", "sentence", "figures", "options", "no_summary", "notes"})
COMMAND = frozenset({"text"})
DOCUMENT = frozenset({"reason"})


def init_app(app: Flask) -> None:
    """Add translation to the templates."""
    app.add_template_global(in_template, "_")
    app.add_template_global(in_template_by_number, "ngettext")
    app.add_template_filter(translated)
    app.add_template_filter(number)
    app.after_request(_speak_to_our_page)
    app.context_processor(lambda: {"language": language()})


def language() -> Language:
    """Return the language of the current request; English outside of one."""
    if not has_request_context():
        return ENGLISH
    chosen: Language | None = g.get("language")
    if chosen is None:
        chosen = g.language = _chosen()
    return chosen


def gettext(text: str, **values: Any) -> str:
    """Return a text in the language of the request, with its values filled in."""
    return translations(language().code).gettext(text).format(**values)


def ngettext(one: str, many: str, n: int, **values: Any) -> str:
    """Return the plural form of a text for a number, which it contains as ``{n}``."""
    return translations(language().code).ngettext(one, many, n).format(**{"n": number(n)} | values)


def in_template(text: str, /, **values: Any) -> Markup:
    """Return a text for a template: its own HTML is kept, values are escaped."""
    return _as_markup(text, translations(language().code).gettext(text)).format(**values)


def in_template_by_number(one: str, many: str, n: int, **values: Any) -> Markup:
    """Return the plural form of a text for a template; the number is ``{n}`` in it."""
    text = translations(language().code).ngettext(one, many, n)
    return _as_markup(one, text).format(**{"n": number(n)} | values)


def translated(sentence: Any) -> str:
    """Return an English sentence from lower layers, such as an error, in the language of the request."""
    return translate(language().code, str(sentence))


def number(value: float, digits: int | None = None) -> str:
    """Return a number formatted for the language: "12,345"; ``digits`` are decimals."""
    pattern = None if digits is None else f"#,##0.{'0' * digits}".rstrip(".")
    return format_decimal(value, pattern, language().locale)


def _as_markup(source: str, text: str) -> Markup:
    return Markup(text) if "<" in source else escape(text)  # noqa: S704 - Our own text.


def _chosen() -> Language:
    if request.path.startswith(FOR_PROGRAMS) and not (request.path.startswith("/api/") and _is_from_our_page()):
        return ENGLISH
    own = request.cookies.get(LANGUAGE_COOKIE)
    if own in LANGUAGES:
        return LANGUAGES[own]
    setting = whole_services().settings.current.page_language
    if setting != AUTO:
        return LANGUAGES[setting]
    if len(request.headers.get("Accept-Language", "")) > MAX_ACCEPTED_CHARS:
        return ENGLISH
    return LANGUAGES[request.accept_languages.best_match(LANGUAGES, ENGLISH.code)]


def _speak_to_our_page(response: Response) -> Response:
    """Translate API responses to our pages."""
    if language() is not ENGLISH and request.path.startswith("/api/") and response.is_json:
        response.set_data(json.dumps(in_words_of(language(), response.get_json())))
    return response


def in_words_of(spoken: Language, data: Any, is_sentence: bool = False) -> Any:
    """Return a response's data with its sentences translated; names and codes stay as they are."""
    if isinstance(data, str):
        return translate(spoken.code, data) if is_sentence else data
    if isinstance(data, list):
        return [in_words_of(spoken, one, is_sentence) for one in data]
    if not isinstance(data, dict):
        return data
    own = SENTENCES | (COMMAND if "fold" in data else set()) | (DOCUMENT if "state" in data else set())
    return {name: in_words_of(spoken, value, is_sentence or name in own) for name, value in data.items()}


def _is_from_our_page() -> bool:
    """Return whether a page of ours sent the request, by the browser's Sec-Fetch headers or the Referer."""
    headers = request.headers
    site, referrer = headers.get("Sec-Fetch-Site"), headers.get("Referer")
    if site is not None:
        return site == "same-origin"
    return referrer is not None and urlsplit(referrer).netloc == headers.get("Host")
