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
# Measured over English, German and Chinese text with the tokenizer of the embedded model: see docs/benchmarks.md.
UTF8_BYTES_PER_TOKEN = 3.6


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens in ``text``, from its length in UTF-8: linear, without any table."""
    return ceil(len(text.encode("utf-8", "surrogatepass")) / UTF8_BYTES_PER_TOKEN)


def count_message(message: Message, count_tokens: CountTokens) -> int:
    """Return the tokens of one message: its text, its tool calls and what the chat template adds."""
    tokens = TOKENS_PER_MESSAGE
    content = message.get("content")
    if isinstance(content, str):
        tokens += count_tokens(content)
    elif content:
        tokens += sum(count_tokens(part.get("text") or "") for part in content)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        tokens += count_tokens(function.get("name") or "") + count_tokens(function.get("arguments") or "")
    return tokens


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
