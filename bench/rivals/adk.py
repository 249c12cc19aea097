"""Google ADK: ``ContextFilterPlugin``, which keeps the last invocations of a request."""

import json
from importlib import import_module
from typing import Any

from bench.rivals.rival import Limit, Message, Rival, assistant, calls_of, names_of_calls, results_together, tool_result


def load(messages: list[Message], limit: Limit) -> tuple[Any, Any]:
    """Return the plugin and a request with the messages. The running invocation counts, so it keeps one more."""
    plugin = import_module("google.adk.plugins.context_filter_plugin").ContextFilterPlugin(
        num_invocations_to_keep=limit.turns + 1
    )
    request = import_module("google.adk.models.llm_request").LlmRequest(contents=_converted(messages))
    return plugin, request


async def cut(state: tuple[Any, Any]) -> Any:
    """Let the plugin filter the request and return the remaining contents."""
    plugin, request = state
    await plugin.before_model_callback(callback_context=None, llm_request=request)
    return request.contents


def back(contents: Any) -> list[Message]:
    """Return the contents in the OpenAI format."""
    converted: list[Message] = []
    for content in contents:
        text = "".join(part.text or "" for part in content.parts)
        calls = [part.function_call for part in content.parts if part.function_call]
        results = [part.function_response for part in content.parts if part.function_response]
        if results:
            converted += [tool_result(result.id, result.response["result"]) for result in results]
        elif content.role == "user":
            converted.append({"role": "user", "content": text})
        else:
            converted.append(assistant(text, [(call.id, call.name, json.dumps(call.args)) for call in calls]))
    return converted


def _converted(messages: list[Message]) -> list[Any]:
    types = import_module("google.genai.types")
    names = names_of_calls(messages)
    converted = []
    for group in results_together(messages):
        message = group[0]
        if message["role"] == "tool":
            parts = [
                types.Part(
                    function_response=types.FunctionResponse(
                        id=result["tool_call_id"],
                        name=names.get(result["tool_call_id"], ""),
                        response={"result": result["content"] or ""},
                    )
                )
                for result in group
            ]
        else:
            parts = [types.Part(text=message["content"])] if message.get("content") else []
            parts += [
                types.Part(
                    function_call=types.FunctionCall(
                        id=call["id"],
                        name=call["function"]["name"],
                        args=json.loads(call["function"]["arguments"] or "{}"),
                    )
                )
                for call in calls_of(message)
            ]
        role = "model" if message["role"] == "assistant" else "user"
        converted.append(types.Content(role=role, parts=parts))
    return converted


RIVALS = [
    Rival(
        name="Google ADK",
        package="google-adk",
        documented_as="`App(plugins=[ContextFilterPlugin(num_invocations_to_keep=...)])`; docstring of the plugin",
        window=lambda limit: f"{limit.turns} turns + the running one",
        applied="call",
        system_apart=True,
        tells_caller="no",
        tells_model="no",
        load=load,
        cut=cut,
        back=back,
        timed=cut,
    )
]
