"""The token budget: what a request may cost, and which past turns leave when it costs more.

Pure: no Flask, no SQL, no network, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from rag_assistant.errors import QuestionDoesNotFit
from rag_assistant.records import Message

CountTokens = Callable[[str], int]

# What a chat template adds to each message (role, separators), as OpenAI's own counting guide has it.
TOKENS_PER_MESSAGE = 4
# Between what the built-in model's tokenizer makes of English, German and code, and what it makes of Chinese: see
# docs/benchmarks.md.
ASCII_CHARACTERS_PER_TOKEN = 3.6
OTHER_BYTES_PER_TOKEN = 1.6


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens in ``text``, from its length in UTF-8: linear, without any table."""
    in_ascii = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    others = 0 if text.isascii() else len(text.encode("utf-8", "surrogatepass")) - in_ascii
    return ceil(in_ascii / ASCII_CHARACTERS_PER_TOKEN + others / OTHER_BYTES_PER_TOKEN)


def count_message(message: Message, count_tokens: CountTokens) -> int:
    """Return the tokens of one message: its text, its tool calls and what the chat template adds."""
    tokens = TOKENS_PER_MESSAGE + count_tokens(text_of(message))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        tokens += count_tokens(function.get("name") or "") + count_tokens(function.get("arguments") or "")
    return tokens


def text_of(message: Message) -> str:
    """Return the text of a message, whether it comes whole or in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def newest_that_fit(
    turns: Sequence[Sequence[Message]], fixed_tokens: int, budget: int, count_tokens: CountTokens
) -> int:
    """Return how many of the newest turns fit beside ``fixed_tokens`` into ``budget``; a turn is whole or not at all.

    The kept turns are contiguous: behind one that does not fit, no older one is kept. Raises QuestionDoesNotFit when
    ``fixed_tokens`` (system message, passages and question) alone are over the budget.
    """
    if fixed_tokens > budget:
        raise QuestionDoesNotFit(
            f"The question with its instructions and passages has about {fixed_tokens} tokens; "
            f"the model takes {budget}. Ask a shorter question, or connect a model that takes more."
        )
    left = budget - fixed_tokens
    for kept, turn in enumerate(reversed(turns)):
        left -= sum(count_message(message, count_tokens) for message in turn)
        if left < 0:
            return kept
    return len(turns)
