"""LlamaIndex: ``ChatMemoryBuffer``, and ``Memory``, which its documentation recommends instead."""

import json
from importlib import import_module
from typing import Any

from bench.rivals.rival import Limit, Message, Rival, assistant, calls_of, tool_result

# The share of a Memory's token limit that its default leaves to the chat history.
HISTORY_SHARE = 0.7
# The default of how much is flushed at once is a tenth of the default limit.
FLUSH_SHARE = 0.1


def load_buffer(messages: list[Message], limit: Limit) -> Any:
    """Return a buffer that holds the messages."""
    memory = import_module("llama_index.core.memory").ChatMemoryBuffer
    return memory.from_defaults(chat_history=_converted(messages), token_limit=limit.tokens)


def cut_buffer(buffer: Any) -> Any:
    """Return what the buffer gives to the model."""
    return buffer.get()


async def load_memory(messages: list[Message], limit: Limit) -> tuple[Any, Any]:
    """Return a memory that holds all messages but the last, and the last."""
    token_limit = int(limit.tokens / HISTORY_SHARE)
    memory = import_module("llama_index.core.memory").Memory.from_defaults(
        token_limit=token_limit, token_flush_size=int(token_limit * FLUSH_SHARE)
    )
    *before, question = _converted(messages)
    if before:
        await memory.aset(before)
    return memory, question


async def cut_memory(state: tuple[Any, Any]) -> Any:
    """Add the question, which makes a memory trim, and return what it sends to the model."""
    memory, question = state
    await memory.aput(question)
    return await memory.aget()


def back(messages: Any) -> list[Message]:
    """Return the library's messages in the OpenAI format."""
    converted = []
    for message in messages:
        role = str(message.role.value)
        if role == "tool":
            converted.append(tool_result(message.additional_kwargs["tool_call_id"], message.content or ""))
        elif role == "assistant":
            calls = [
                (block.tool_call_id, block.tool_name, json.dumps(block.tool_kwargs))
                for block in message.blocks
                if block.block_type == "tool_call"
            ]
            converted.append(assistant(message.content, calls))
        else:
            converted.append({"role": role, "content": message.content or ""})
    return converted


def _converted(messages: list[Message]) -> list[Any]:
    types = import_module("llama_index.core.base.llms.types")
    converted = []
    for message in messages:
        blocks = [types.TextBlock(text=message["content"])] if message.get("content") else []
        blocks += [
            types.ToolCallBlock(
                tool_call_id=call["id"],
                tool_name=call["function"]["name"],
                tool_kwargs=json.loads(call["function"]["arguments"] or "{}"),
            )
            for call in calls_of(message)
        ]
        more = {"tool_call_id": message["tool_call_id"]} if message["role"] == "tool" else {}
        converted.append(types.ChatMessage(role=message["role"], blocks=blocks, additional_kwargs=more))
    return converted


BUFFER = Rival(
    name="LlamaIndex, ChatMemoryBuffer",
    package="llama-index-core",
    documented_as='`ChatMemoryBuffer.from_defaults(token_limit=...)`, `get()`; reference "Chat memory buffer" '
    "(deprecated there)",
    window=lambda limit: f"{limit.tokens} tokens",
    applied="question",
    system_apart=True,
    tells_caller="no",
    tells_model="no",
    load=load_buffer,
    cut=cut_buffer,
    back=back,
    timed=cut_buffer,
)
MEMORY = Rival(
    name="LlamaIndex, Memory",
    package="llama-index-core",
    documented_as='`Memory.from_defaults(token_limit=...)`, `aput()`, `aget()`; guide "Memory"',
    window=lambda limit: f"{limit.tokens} tokens for the history",
    applied="question",
    system_apart=True,
    tells_caller="no",
    tells_model="no",
    load=load_memory,
    cut=cut_memory,
    back=back,
    timed=None,
)
RIVALS = [BUFFER, MEMORY]
