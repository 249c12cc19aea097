"""The names that OpenTelemetry gives to the steps of an assistant, and to what is known of them.

OpenTelemetry, Semantic Conventions for Generative AI; they still change, so all of them stand here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from rag_assistant.runtime.telemetry.steps import Step, Value

AGENT = "rag-assistant"
# What speaks OpenAI's protocol counts as OpenAI; whose it is, its address says.
PROVIDER = "openai"
OPERATIONS = {"turn": "invoke_agent", "search": "retrieval", "model": "chat", "tool": "execute_tool"}
NAMES = {
    "conversation_id": "gen_ai.conversation.id",
    "model": "gen_ai.request.model",
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "finish_reason": "gen_ai.response.finish_reasons",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "tool": "gen_ai.tool.name",
    "error": "error.type",
}
# Of which the standard knows nothing.
OWN_NAMES = {"turn_id", "ending", "turns_dropped"}


def span_name(step: Step) -> str:
    """Return what a span is called: the operation and what it is done with."""
    operation = OPERATIONS.get(step.name)
    if operation is None:
        return step.name
    target = {"turn": AGENT, "model": step.facts.get("model"), "tool": step.facts.get("tool")}.get(step.name)
    return f"{operation} {target}" if target else operation


def is_call_to_others(step: Step) -> bool:
    """Tell whether the step waits for another program."""
    return step.name == "model"


def attributes(step: Step) -> dict[str, str | int | float | bool | list[str]]:
    """Return what is known of a step under the standard's names."""
    found: dict[str, str | int | float | bool | list[str]] = {}
    if operation := OPERATIONS.get(step.name):
        found["gen_ai.operation.name"] = operation
    if step.name == "turn":
        found["gen_ai.agent.name"] = AGENT
    if step.name == "model":
        found["gen_ai.provider.name"] = PROVIDER
        found |= _server(step.facts.get("base_url"))
    for fact, value in step.facts.items():
        if value is None:
            continue
        if fact == "finish_reason":
            found[NAMES[fact]] = [str(value)]
        elif fact == "conversation_id":
            found[NAMES[fact]] = str(value)
        elif fact in NAMES:
            found[NAMES[fact]] = value
        elif fact in OWN_NAMES:
            found[f"rag_assistant.{fact}"] = value
    return found


def _server(base_url: Value) -> dict[str, str | int]:
    address = urlsplit(str(base_url or ""))
    if not address.hostname:
        return {}
    return {"server.address": address.hostname, "server.port": address.port or {"http": 80}.get(address.scheme, 443)}
