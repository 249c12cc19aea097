"""Recognise why an endpoint refused a request: its length, with the figures; tools; or something else.

The wordings are those of servers and gateways that speak the OpenAI protocol; tests list them.
"""

import re
from collections.abc import Sequence

from rag_assistant.llm.prompt_counts import is_count
from rag_assistant.records.errors import ContextTooLong

# The status codes for requests that are too long; others are about keys, rates and addresses.
MAY_BE_TOO_LONG = frozenset({400, 413, 422, 500})
# The model wrote an invalid tool call (Groq): the next attempt may be valid.
MODEL_MISCARRIED = frozenset({"tool_use_failed"})

TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|ContextWindowExceeded"
    r"|maximum (?:context|prompt) length|maximum model length|context (?:window|length|size|limit)[^.]{0,40}exceed"
    r"|exceeds?[^.]{0,60}context (?:window|length|size|limit)|prompt is too long|input is too long"
    r"|too large for model with|too many tokens|longer than the (?:model'?s )?(?:maximum|context)"
    r"|context the overflows|greater than the context length|input token count[^.]{0,30}exceeds"
    r"|`inputs`[^.]{0,40}must (?:be|have)|range of input length|exceeded model token limit|exceeds max length"
    r"|maximum input length|model\'s context length is only|reduce the length of the messages",
    re.IGNORECASE,
)
# From its first digit, so that a long one is looked at once; longer ones count no tokens.
NUMBER = r"(?<![\d,])(\d{1,3}(?:,\d{3}){1,2}|\d{1,9})(?!\d|,\d)"
# A sentence about another limit that only mentions the words above.
ABOUT_SOMETHING_ELSE = re.compile(
    r"rate limit|per min|quota|max_tokens must be|'(?=[^']*')[^']*maximum context length", re.IGNORECASE
)
LIMIT = tuple(
    re.compile(pattern.replace("N", NUMBER), re.IGNORECASE)
    for pattern in (
        r"context length is(?: only)? N", r"context length (?:of|:)(?: only)? N", r"length of only N",
        r"context (?:length|window|size) \(N", r"context window of N", r"exceed context limit: \d+ \+ \d+ > N",
        r"> N maximum", r"N maximum", r"maximum prompt length is N", r"maximum model length of N",
        r"maximum context length: N", r"n_ctx: N", r"tokens allowed \(?N", r"must be <= N", r"less than N tokens",
        r"cannot exceed N", r"\[\d+, N\]", r"token limit: N", r"limit is N", r"context length of N",
    )
)  # fmt: skip
PROMPT = tuple(
    re.compile(pattern.replace("N", NUMBER), re.IGNORECASE)
    for pattern in (
        r"N input tokens", r"N tokens from the input", r"\(N in (?:the messages|your prompt)", r"\(N of text input",
        r"Given: N", r"resulted in N", r"exceed context limit: N", r"Prompt contains N", r"request contains N",
        r"prompt is too long: N", r"keep the first N", r"n_keep: N", r"token count \(N", r"prompt \(length N",
        r"received N", r"input \(N tokens", r"request \(N tokens", r"length is N while", r"requested tokens \(N",
        r"you requested(?: about)? N tokens",
    )
)  # fmt: skip
TITLE = re.compile(r"<title[^<>]*>([^<]+)</title>", re.IGNORECASE)
TOOLS = r"(?:tools?|tool[_ -]?(?:use|calls?|calling)|toolcalls?|function[_ -]?call(?:s|ing)?)"
TAKES_NO_TOOLS = re.compile(
    rf"(?:does not|doesn't|not|no endpoints found that) support(?:ed)?\b[^.']{{0,20}}\b{TOOLS}\b"
    rf"|(?<!parallel )\b{TOOLS}\b[`']?(?: (?:is|are))? not (?:supported|available|enabled)"
    rf"|unsupported parameter: ['`]?{TOOLS}\b|unrecognized request argument[^.]{{0,20}}\b{TOOLS}\b"
    r"|tool choice requires --|tools? param requires|\bbody\.tools: extra inputs|extra inputs are not permitted: tools"
    r"|model_not_supported: tools",
    re.IGNORECASE,
)


def context_too_long(body: object) -> ContextTooLong | None:
    """Return the error for a request refused for its length, ``None`` for any other reason."""
    text = "\n".join(_texts_in(body))
    if not TOO_LONG.search(text) or ABOUT_SOMETHING_ELSE.search(text):
        return None
    fields = _error_in(body)
    limit = _whole(fields.get("n_ctx")) or _number_in(text, LIMIT)
    prompt = _whole(fields.get("n_prompt_tokens")) or _number_in(text, PROMPT)
    takes = f"it accepts {limit} tokens" if limit else "it does not say how many tokens it accepts"
    return ContextTooLong(f"The request is longer than the model accepts; {takes}.", limit, prompt)


def refuses_tools(reason: str) -> bool:
    """Return whether an endpoint refused a request because it supports no tools, and not because of one call."""
    return TAKES_NO_TOOLS.search(reason) is not None


def is_web_page(body: str) -> bool:
    """Return whether a body is HTML, so that it isn't from a model."""
    return body.lstrip("\ufeff \t\r\n").startswith("<")


def code_of(body: object) -> str | None:
    """Return an endpoint's error code."""
    code = _error_in(body).get("code")
    return code if isinstance(code, str) else None


def reason_in(body: object) -> str:
    """Return the sentence in an endpoint's error, wherever it is; for a web page its title."""
    if isinstance(body, str) and is_web_page(body):
        title = TITLE.search(body)
        return f"it answered with a web page{f', {title[1].strip()}' if title else ''}"
    value: object = body
    for name in ("error", "message"):
        if isinstance(value, dict) and value.get(name):
            value = value[name]
    if isinstance(value, dict):
        value = value.get("detail")
    return str(value or "no reason was given")


def _error_in(body: object) -> dict[str, object]:
    first = body[0] if isinstance(body, list) and body else body
    error = first.get("error", first) if isinstance(first, dict) else None
    return error if isinstance(error, dict) else {}


def _texts_in(body: object) -> list[str]:
    """Return every text in an error; gateways embed the one they received in their own."""
    waiting, texts = [body], []
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (dict, list)):
            waiting += reversed(value.values() if isinstance(value, dict) else value)
    return texts


def _number_in(text: str, patterns: Sequence[re.Pattern[str]]) -> int | None:
    first_match = next((match for pattern in patterns if (match := pattern.search(text))), None)
    return int(first_match.group(1).replace(",", "")) if first_match else None


def _whole(value: object) -> int | None:
    return value if is_count(value) and value else None
