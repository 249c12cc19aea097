"""AutoGen: the model contexts that keep the last messages, and the first with the last."""

from importlib import import_module
from typing import Any

from bench.rivals.rival import Limit, Message, Rival, assistant, calls_of, names_of_calls, results_together, tool_result


def load_buffered(messages: list[Message], limit: Limit) -> Any:
    """Return a context that shows the last messages."""
    contexts = import_module("autogen_core.model_context")
    return contexts.BufferedChatCompletionContext(limit.with_question, _converted(messages))


def load_head_and_tail(messages: list[Message], limit: Limit) -> Any:
    """Return a context that shows the first message and the last ones."""
    contexts = import_module("autogen_core.model_context")
    return contexts.HeadAndTailChatCompletionContext(1, limit.messages, _converted(messages))


async def cut(context: Any) -> Any:
    """Return what the context shows to the model."""
    return await context.get_messages()


def back(messages: Any) -> list[Message]:
    """Return the library's messages in the OpenAI format."""
    converted: list[Message] = []
    for message in messages:
        if message.type == "FunctionExecutionResultMessage":
            converted += [tool_result(result.call_id, result.content) for result in message.content]
        elif message.type == "UserMessage":
            converted.append({"role": "user", "content": message.content})
        elif isinstance(message.content, str):
            converted.append(assistant(message.content))
        else:
            calls = [(call.id, call.name, call.arguments) for call in message.content]
            converted.append(assistant(message.thought, calls))
    return converted


def _converted(messages: list[Message]) -> list[Any]:
    models = import_module("autogen_core.models")
    call_type = import_module("autogen_core").FunctionCall
    names = names_of_calls(messages)
    converted = []
    for group in results_together(messages):
        message, text = group[0], group[0].get("content") or ""
        calls = [
            call_type(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
            for call in calls_of(message)
        ]
        if message["role"] == "tool":
            results = [
                models.FunctionExecutionResult(
                    call_id=result["tool_call_id"],
                    name=names.get(result["tool_call_id"], ""),
                    content=result["content"] or "",
                )
                for result in group
            ]
            converted.append(models.FunctionExecutionResultMessage(content=results))
        elif message["role"] == "user":
            converted.append(models.UserMessage(content=text, source="user"))
        elif calls:
            converted.append(models.AssistantMessage(content=calls, thought=text or None, source="assistant"))
        else:
            converted.append(models.AssistantMessage(content=text, source="assistant"))
    return converted


BUFFERED = Rival(
    name="AutoGen, buffered",
    package="autogen-core",
    documented_as='`BufferedChatCompletionContext(buffer_size=...)`, `get_messages()`; guide "Model Context"',
    window=lambda limit: f"{limit.with_question} messages, parallel results one",
    applied="call",
    system_apart=True,
    tells_caller="no",
    tells_model="no",
    load=load_buffered,
    cut=cut,
    back=back,
    timed=cut,
)
HEAD_AND_TAIL = Rival(
    name="AutoGen, head and tail",
    package="autogen-core",
    documented_as='`HeadAndTailChatCompletionContext(head_size=1, tail_size=...)`; reference "model_context"',
    window=lambda limit: f"the first and the last {limit.messages} messages, parallel results one",
    applied="call",
    system_apart=True,
    tells_caller="no",
    tells_model='yes: a user message "Skipped 7 messages."',
    load=load_head_and_tail,
    cut=cut,
    back=back,
    timed=cut,
)
RIVALS = [BUFFERED, HEAD_AND_TAIL]
