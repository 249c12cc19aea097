"""OpenAI Agents SDK: a session of which only the last items are read before each run."""

from functools import cache
from importlib import import_module
from typing import Any

from bench.rivals.rival import Limit, Message, Rival, calls_of


async def load(messages: list[Message], limit: Limit) -> tuple[Any, str]:
    """Return a session in memory that holds all items but the question, and the question."""
    library = import_module("agents")
    session = library.SQLiteSession("bench", session_settings=library.SessionSettings(limit=limit.messages))
    *before, question = messages
    if before:
        await session.add_items([item for message in before for item in _items(message)])
    return session, question["content"]


async def cut(state: tuple[Any, str]) -> Any:
    """Run the question and return the items that the runner sent to the model."""
    session, question = state
    library = import_module("agents")
    library.set_tracing_disabled(True)
    model = _recording_model()()
    await library.Runner.run(library.Agent(name="bench", model=model), question, session=session)
    session.close()
    return model.seen


async def read(state: tuple[Any, str]) -> Any:
    """Return the items of the window: the cost of the limit itself, without the run around it."""
    return await state[0].get_items()


def back(items: Any) -> list[Message]:
    """Return the items as the library itself writes them for a chat completion."""
    converter = import_module("agents.models.chatcmpl_converter").Converter
    return [dict(message) for message in converter.items_to_messages(items)]


def _items(message: Message) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        output = message["content"] or ""
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}]
    said = [{"role": message["role"], "content": message["content"]}] if message.get("content") else []
    if said and message["role"] == "assistant":
        part = {"type": "output_text", "text": message["content"], "annotations": []}
        said = [{"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [part]}]
    calls = [
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
        }
        for call in calls_of(message)
    ]
    return [*said, *calls]


@cache
def _recording_model() -> Any:
    """Return a class of models that keep what they are sent and answer with one word."""
    model = import_module("agents.models.interface").Model
    library = import_module("agents")
    types = import_module("openai.types.responses")

    async def get_response(self: Any, *_: Any, **given: Any) -> Any:
        self.seen = given["input"]
        text = types.ResponseOutputText(type="output_text", text="ok", annotations=[])
        message = types.ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[text]
        )
        return library.ModelResponse(output=[message], usage=library.Usage(), response_id=None)

    def stream_response(*_: Any, **__: Any) -> Any:
        raise NotImplementedError

    return type("RecordingModel", (model,), {"get_response": get_response, "stream_response": stream_response})


RIVALS = [
    Rival(
        name="OpenAI Agents SDK",
        package="openai-agents",
        documented_as="`SQLiteSession(session_settings=SessionSettings(limit=...))`, `Runner.run(session=...)`; guide "
        '"Sessions", "Limiting retrieved history"',
        window=lambda limit: f"{limit.messages} items before the question",
        applied="question",
        system_apart=True,
        tells_caller="no",
        tells_model="no",
        load=load,
        cut=cut,
        back=back,
        timed=read,
    )
]
