"""In which language a request is answered, and the words of templates in it.

A page follows what its reader chose on it, else the setting ``page_language``, by default what the browser asks for.
So does what a page of ours asks the API for; to everybody else the API speaks English.
"""

from typing import Any
from urllib.parse import urlsplit

from babel.numbers import format_decimal
from flask import Flask, Response, g, has_request_context, json, request
from markupsafe import Markup, escape

from rag_assistant.web.i18n import catalogs, sentences
from rag_assistant.web.i18n.languages import ENGLISH, LANGUAGES, Language
from rag_assistant.web.routing import FOR_PROGRAMS
from rag_assistant.web.services import whole_services

LANGUAGE_COOKIE = "language"
AUTO = "auto"
# To read thousands of languages, which no browser names, takes longer than the page.
MAX_ACCEPTED_CHARS = 1000
# Fields of the API that hold what is said to people; what a command did, and why a document is as it is.
SENTENCES = frozenset({"message", "sentence", "figures", "options", "no_summary", "notes"})
COMMAND = frozenset({"text"})
DOCUMENT = frozenset({"reason"})


def init_app(app: Flask) -> None:
    """Let templates speak the language of the request."""
    app.add_template_global(in_template, "_")
    app.add_template_global(in_template_by_number, "ngettext")
    app.add_template_filter(translated)
    app.add_template_filter(number)
    app.after_request(_speak_to_our_page)
    app.context_processor(lambda: {"language": language()})


def language() -> Language:
    """Return the language in which the request at hand is answered; English where there is none."""
    if not has_request_context():
        return ENGLISH
    chosen: Language | None = g.get("language")
    if chosen is None:
        chosen = g.language = _chosen()
    return chosen


def gettext(text: str, **values: Any) -> str:
    """Return a text in the language of the request, with the values in their places."""
    return catalogs.gettext(language().code, text).format(**values)


def ngettext(one: str, many: str, n: int, **values: Any) -> str:
    """Return the form of a text that suits a number, which stands in it as ``{n}``."""
    return catalogs.ngettext(language().code, one, many, n).format(**{"n": number(n)} | values)


def in_template(text: str, /, **values: Any) -> Markup:
    """Return a text for a template: what is HTML in our own text stays so, the values are escaped."""
    return _as_markup(text, catalogs.gettext(language().code, text)).format(**values)


def in_template_by_number(one: str, many: str, n: int, **values: Any) -> Markup:
    """Return the form of a text for a template that suits a number, which stands in it as ``{n}``."""
    text = catalogs.ngettext(language().code, one, many, n)
    return _as_markup(one, text).format(**{"n": number(n)} | values)


def translated(sentence: Any) -> str:
    """Return what was said in English further down, such as an error, in the language of the request."""
    return sentences.translate(language().code, str(sentence))


def number(value: float, digits: int | None = None) -> str:
    """Return a number as the language of the request writes it: "12,345"; ``digits`` are those behind the point."""
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
    """Put what the API says into the language of the page that asks."""
    if language() is not ENGLISH and request.path.startswith("/api/") and response.is_json:
        response.set_data(json.dumps(in_words_of(language(), response.get_json())))
    return response


def in_words_of(spoken: Language, data: Any) -> Any:
    """Return what the API answers, with its sentences in a language; names and codes stay as they are."""
    if isinstance(data, list):
        return [in_words_of(spoken, one) for one in data]
    if not isinstance(data, dict):
        return data
    own = SENTENCES | (COMMAND if "fold" in data else set()) | (DOCUMENT if "state" in data else set())
    return {name: (_said_in if name in own else in_words_of)(spoken, value) for name, value in data.items()}


def _said_in(spoken: Language, value: Any) -> Any:
    if isinstance(value, str):
        return sentences.translate(spoken.code, value)
    if isinstance(value, list):
        return [_said_in(spoken, one) for one in value]
    return {name: _said_in(spoken, one) for name, one in value.items()} if isinstance(value, dict) else value


def _is_from_our_page() -> bool:
    """Tell whether a page of ours asks: browsers say so, where they trust the connection, or name the page."""
    headers = request.headers
    site, referrer = headers.get("Sec-Fetch-Site"), headers.get("Referer")
    if site is not None:
        return site == "same-origin"
    return referrer is not None and urlsplit(referrer).netloc == headers.get("Host")
