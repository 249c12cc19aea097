"""Semantic Kernel: ``ChatHistoryTruncationReducer``, with the threshold of its sample and without one."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from bench.rivals.rival import Limit, Message, Rival, assistant, calls_of, names_of_calls, tool_result


def load(threshold: Callable[[Limit], int]) -> Callable[[list[Message], Limit], Any]:
    """Return what fills a reducer whose threshold is ``threshold`` of the limit."""

    def filled(messages: list[Message], limit: Limit) -> Any:
        return import_module("semantic_kernel.contents").ChatHistoryTruncationReducer(
            messages=_converted(messages), target_count=limit.messages, threshold_count=threshold(limit)
        )

    return filled


async def cut(reducer: Any) -> Any:
    """Reduce the history and return the reducer, which holds it."""
    await reducer.reduce()
    return reducer


def back(reducer: Any) -> list[Message]:
    """Return the reducer's messages in the OpenAI format."""
    converted = []
    for message in reducer.messages:
        if message.role.value == "tool":
            converted += [tool_result(item.id, str(item.result)) for item in message.items]
        elif message.role.value == "assistant":
            calls = [
                (item.id, item.name, item.arguments) for item in message.items if item.content_type == "function_call"
            ]
            converted.append(assistant(message.content, calls))
        else:
            converted.append({"role": message.role.value, "content": message.content})
    return converted


def _converted(messages: list[Message]) -> list[Any]:
    contents = import_module("semantic_kernel.contents")
    names = names_of_calls(messages)
    converted = []
    for message in messages:
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            items = [
                contents.FunctionResultContent(id=call_id, name=names.get(call_id, ""), result=message["content"] or "")
            ]
        else:
            items = [contents.TextContent(text=message["content"])] if message.get("content") else []
            items += [
                contents.FunctionCallContent(
                    id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"]
                )
                for call in calls_of(message)
            ]
        converted.append(contents.ChatMessageContent(role=message["role"], items=items))
    return converted


def _rival(name: str, documented_as: str, threshold: Callable[[Limit], int]) -> Rival:
    return Rival(
        name=name,
        package="semantic-kernel",
        documented_as=documented_as,
        window=lambda limit: f"{limit.messages} messages, cut beyond {limit.messages + threshold(limit)}",
        applied="answer",
        system_apart=True,
        tells_caller="that it cut: `reduce()` returns `None` if it did not",
        tells_model="no",
        load=load(threshold),
        cut=cut,
        back=back,
        timed=cut,
    )


RIVALS = [
    _rival(
        "Semantic Kernel, threshold",
        "`ChatHistoryTruncationReducer(target_count=10, threshold_count=10)`, `reduce()` after each answer; sample "
        '"chat_completion_agent_truncate_history_reducer_single_agent"',
        lambda limit: limit.messages,
    ),
    _rival(
        "Semantic Kernel",
        'the same with the default threshold of 0; reference "ChatHistoryTruncationReducer"',
        lambda _: 0,
    ),
]
