"""Strands Agents: ``SlidingWindowConversationManager``, as it is by default and before each call of the model."""

import json
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Literal

from bench.rivals.rival import Limit, Message, Rival, assistant, calls_of, results_together, tool_result


def load(per_turn: bool) -> Callable[[list[Message], Limit], tuple[Any, Any]]:
    """Return what makes a manager and an agent that holds the messages."""

    def made(messages: list[Message], limit: Limit) -> tuple[Any, Any]:
        managers = import_module("strands.agent.conversation_manager")
        size = _size(per_turn, limit)
        manager = managers.SlidingWindowConversationManager(window_size=size, per_turn=per_turn)
        return manager, SimpleNamespace(messages=_converted(messages))

    return made


def cut(state: tuple[Any, Any]) -> Any:
    """Let the manager trim the agent's messages, as the agent has it do, and return them."""
    manager, agent = state
    manager.apply_management(agent)
    return agent.messages


def back(messages: Any) -> list[Message]:
    """Return the library's messages in the OpenAI format."""
    converted: list[Message] = []
    for message in messages:
        text = "".join(block.get("text", "") for block in message["content"])
        calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
        if results:
            converted += [tool_result(result["toolUseId"], result["content"][0]["text"]) for result in results]
        elif message["role"] == "user":
            converted.append({"role": "user", "content": text})
        else:
            called = [(call["toolUseId"], call["name"], json.dumps(call["input"])) for call in calls]
            converted.append(assistant(text, called))
    return converted


def _size(per_turn: bool, limit: Limit) -> int:
    return limit.with_question if per_turn else limit.messages


def _converted(messages: list[Message]) -> list[Any]:
    converted = []
    for group in results_together(messages):
        message = group[0]
        content: list[dict[str, Any]]
        if message["role"] == "tool":
            content = [
                {
                    "toolResult": {
                        "toolUseId": result["tool_call_id"],
                        "status": "success",
                        "content": [{"text": result["content"] or ""}],
                    }
                }
                for result in group
            ]
        else:
            content = [{"text": message["content"]}] if message.get("content") else []
            content += [
                {
                    "toolUse": {
                        "toolUseId": call["id"],
                        "name": call["function"]["name"],
                        "input": json.loads(call["function"]["arguments"] or "{}"),
                    }
                }
                for call in calls_of(message)
            ]
        converted.append({"role": "assistant" if message["role"] == "assistant" else "user", "content": content})
    return converted


def _rival(name: str, documented_as: str, applied: Literal["call", "answer"], per_turn: bool) -> Rival:
    return Rival(
        name=name,
        package="strands-agents",
        documented_as=documented_as,
        window=lambda limit: f"{_size(per_turn, limit)} messages, parallel results one",
        applied=applied,
        system_apart=True,
        tells_caller="how many messages: `removed_message_count`",
        tells_model="no",
        load=load(per_turn),
        cut=cut,
        back=back,
        timed=cut,
    )


RIVALS = [
    _rival(
        "Strands, default",
        "`Agent(conversation_manager=SlidingWindowConversationManager(window_size=...))`; guide "
        '"Conversation Management"',
        "answer",
        per_turn=False,
    ),
    _rival("Strands, per turn", "the same with `per_turn=True`; the same guide", "call", per_turn=True),
]
