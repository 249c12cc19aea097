"""LangChain: ``trim_messages``, with a number of messages and with a number of tokens."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from bench.rivals.rival import Limit, Message, Rival


@dataclass
class Trimming:
    """The library's messages, and how many of what to keep."""

    messages: list[Any]
    most: int
    counter: Any


def load_for_messages(messages: list[Message], limit: Limit) -> Trimming:
    """Return the messages with a limit in messages, the system message counted on top."""
    library = import_module("langchain_core.messages")
    systems = sum(message["role"] == "system" for message in messages)
    return Trimming(library.convert_to_messages(messages), limit.with_question + systems, len)


def load_for_tokens(messages: list[Message], limit: Limit) -> Trimming:
    """Return the messages with a limit in tokens, the system message counted on top."""
    converted = import_module("langchain_core.messages").convert_to_messages(messages)
    counter = import_module("langchain_core.messages.utils").count_tokens_approximately
    systems = [message for message in converted if message.type == "system"]
    return Trimming(converted, limit.tokens + counter(systems), counter)


def cut(trimming: Trimming) -> Any:
    """Return the trimmed messages."""
    return import_module("langchain_core.messages").trim_messages(
        trimming.messages,
        strategy="last",
        token_counter=trimming.counter,
        max_tokens=trimming.most,
        start_on="human",
        end_on=("human", "tool"),
        include_system=True,
    )


def back(messages: Any) -> list[Message]:
    """Return the messages as the library itself writes them for OpenAI."""
    converted: list[Message] = import_module("langchain_core.messages").convert_to_openai_messages(messages)
    return converted


MESSAGES = Rival(
    name="LangChain, messages",
    package="langchain-core",
    documented_as='`trim_messages(strategy="last", token_counter=len, start_on="human", end_on=("human", "tool"), '
    'include_system=True)`; reference "trim_messages"',
    window=lambda limit: f"{limit.with_question} messages + system",
    applied="call",
    system_apart=False,
    tells_caller="no",
    tells_model="no",
    load=load_for_messages,
    cut=cut,
    back=back,
    timed=cut,
)
TOKENS = Rival(
    name="LangChain, tokens",
    package="langchain-core",
    documented_as='the same with `token_counter=count_tokens_approximately`; guide "Short-term memory"',
    window=lambda limit: f"{limit.tokens} tokens + system",
    applied="call",
    system_apart=False,
    tells_caller="no",
    tells_model="no",
    load=load_for_tokens,
    cut=cut,
    back=back,
    timed=cut,
)
RIVALS = [MESSAGES, TOKENS]
