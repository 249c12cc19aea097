"""From a request in OpenAI's protocol to a question, and the turns before it, sent along or stored."""

import base64
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.conversations.pictures import check_pictures
from rag_assistant.conversations.viewed_history import SentHistory, SentSummary
from rag_assistant.records import MAX_INT32, AnswerMode, AnswerOptions, Message, Project, Question, with_pictures
from rag_assistant.records.errors import InvalidRequest, ModelNotFound, ResponseNotFound
from rag_assistant.records.validation import spells_number
from rag_assistant.web.request_parsing import idempotency_key
from rag_assistant.web.routing import services
from rag_assistant.web.v1.bodies import NOTHING, SAMPLING, ChatBody, Item, OpenAIBody, ResponseBody
from rag_assistant.web.v1.parts import Call, ChatMessage, ImageUrl, Part, Thinking, with_packed_thoughts

# The answer modes, each as a model.
MODES: dict[str, AnswerMode] = {
    "rag-assistant": "documents",
    "rag-assistant-tools": "tools",
    "rag-assistant-plain": "plain",
}
# The prefix of project names, which are models, too.
OF_PROJECT = "rag-assistant/"
# Fields that have no effect on quotes.
OF_A_MODEL = (
    *("max_completion_tokens", "max_output_tokens", "max_tokens", "stop", "stop_sequences", "temperature"),
    *SAMPLING,
)
NEW = "new"
SYSTEM = ("system", "developer")
PICTURES = ("image_url", "input_image")
TRUNCATIONS = {None: None, "auto": "trim", "disabled": "ask"}
STORED_TOOLS = (
    "Calls of your own tools and their results are not stored. Send the earlier messages along, and no id of a stored "
    "conversation or response."
)
STORED_ID = re.compile(r"(?:resp|msg)_([1-9][0-9]{0,9})")


class Sent(Struct, frozen=True):
    """The content of the messages: instructions, the question, and the turns before it.

    ``behind`` is the id of the stored turn it follows, if an item names one; ``ignored`` are the places of what no
    model accepts: results without their calls, and another model's reasoning.
    """

    instructions: str | None
    history: SentHistory
    behind: int | None = None
    ignored: tuple[str, ...] = ()


def projects_by_model() -> dict[str, Project]:
    """Return the projects as models; of those with the same name the first, preferring one's own."""
    return {OF_PROJECT + one.name: one for one in reversed(services().projects.all())}


def mode_of(model: str) -> tuple[AnswerMode | None, Project | None]:
    """Return the answer mode and the project of a model. Raises ModelNotFound."""
    if model in MODES:
        return MODES[model], None
    by_model = projects_by_model()
    if model not in by_model:
        raise ModelNotFound(model, ", ".join([*MODES, *by_model]))
    return None, by_model[model]


def question_of(
    body: OpenAIBody, sent: Sent, max_answer_tokens: int | None, named: int | str | None, *, continues: bool
) -> Question:
    """Return the question in a request, in the conversation it names. Raises ModelNotFound, InvalidRequest.

    If it ``continues`` what is stored, it may not have tools of the client: their results aren't stored.
    """
    if not sent.history.question.strip():
        raise InvalidRequest("The last message must be the user's, with at least one visible character, or a result.")
    if waiting := sent.history.open_calls:
        raise InvalidRequest(f"The call {waiting[0]} has no result. Send one for each call, behind the calls.")
    (mode, project), fields, edits = mode_of(body.model), body.endpoint_fields(), body.edits
    sent.history.conversation = replace(sent.history.conversation, project=project)
    if body.rag_assistant is not None and body.rag_assistant.retrieval == "off":
        mode = "plain"
    elif "tools" in fields and mode == "tools":
        mode = "documents"  # No client can follow two kinds of tools at once, some run here and some there.
    if continues and ("tools" in fields or sent.history.iterations):
        raise InvalidRequest(STORED_TOOLS, param="tools")
    compaction, cleared = edits.get("compaction"), edits.get("clear_tool_uses_20250919")
    kept_uses = None if cleared is None else cleared.keep.value if cleared.keep else 3  # As Anthropic does.
    return body.question_about(
        sent.history.question,
        conversation_id=named if isinstance(named, int) else None,
        project_id=project.id if project else None,
        idempotency_key=idempotency_key(),
        on_overflow=body.on_overflow or ("compact" if compaction else TRUNCATIONS[getattr(body, "truncation", None)]),
        options=AnswerOptions(
            mode,
            sent.instructions,
            max_answer_tokens,
            body.temperature,
            history_token_budget=compaction.compact_threshold if compaction else None,
            tool_iterations_keep=kept_uses,
            fields=fields or None,
        ),
        images=sent.history.images,
    )


def ignored_fields(body: OpenAIBody) -> list[str]:
    """Return the fields without effect, here or for quotes. Raises InvalidRequest for those that need a model."""
    ignored = [
        f"context_management.{kind}.{name}" for kind, edit in body.edits.items() for name in edit.model_extra or ()
    ]
    if not isinstance(body, ResponseBody) and set(body.metadata or ()) - {"conversation_id"}:
        ignored.append("metadata")
    if not (getattr(body, "tools", None) or getattr(body, "functions", None)):
        ignored += [
            n for n in ("function_call", "parallel_tool_calls", "tool_choice") if getattr(body, n, None) not in NOTHING
        ]
    if services().models.connected:
        return ignored
    for name in ("tools", "response_format"):
        if name in body.endpoint_fields():
            named = body.format_field if name == "response_format" else name
            raise InvalidRequest(f"{named} needs a language model, and none is connected.", param=named)
    return ignored + [name for name in OF_A_MODEL if getattr(body, name, None) is not None]


def conversation_named(header: str | None, body: OpenAIBody) -> int | str | None:
    """Return the stored conversation that a request names, ``"new"`` to create one, or None. Raises InvalidRequest."""
    where, name = "metadata.conversation_id", (body.metadata or {}).get("conversation_id")
    if header is not None:
        where, name = "X-Conversation-Id", header
    if name is None or name == NEW:
        return name
    if not (spells_number(name) and 1 <= int(name) <= MAX_INT32):
        raise InvalidRequest(
            f'{where} is "{name}"; it must be a whole number from 1 to {MAX_INT32}, or new.', param=where
        )
    return int(name)


def read_chat(body: ChatBody) -> Sent:
    """Return the content of a chat's messages. Raises InvalidRequest, which names what isn't text."""
    places = [f"messages[{n}]" for n in range(len(body.messages))]
    # While tools run, a provider wants its model's thoughts back; of earlier turns they are left out.
    last_question = max((n for n, one in enumerate(body.messages) if one.role == "user"), default=0)
    messages = [_message_of(one, places[n], n > last_question) for n, one in enumerate(body.messages)]
    return sent_along(messages, (), places)


def read_input(given: str | Sequence[Item], instructions: Iterable[str | None]) -> Sent:
    """Return the content of a response's input. Raises InvalidRequest, ResponseNotFound."""
    if isinstance(given, str):
        return sent_along([{"role": "user", "content": given}], instructions, ["input"])
    messages: list[Message] = []
    places: list[str] = []
    thoughts: list[tuple[int, str, str]] = []
    summary: SentSummary | None = None
    behind: int | None = None
    for n, item in enumerate(given):
        where = f"input[{n}]"
        if item.type in ("item_reference", "compaction"):
            messages, places = [], []
        if item.type == "item_reference":
            behind = stored_turn(item.id or "")
        elif item.type == "compaction":
            summary = summary_from(item.encrypted_content or "", where)
        elif item.type == "function_call":
            if not item.name:
                raise InvalidRequest(f"{where} has no name of a function.", param=where)
            function = {"name": item.name, "arguments": item.arguments or "{}"}
            call = {"id": item.call_id, "type": "function", "function": function}
            if messages and messages[-1].get("tool_calls"):
                messages[-1]["tool_calls"].append(call)
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif item.type == "function_call_output":
            output = text_of(item.output, f"{where}.output")
            messages.append({"role": "tool", "tool_call_id": item.call_id, "content": output})
        elif item.type == "message" and item.role:
            messages.append(_said(item.role, item.content, f"{where}.content"))
        elif item.type == "reasoning":
            thoughts.append((len(messages), where, item.encrypted_content or ""))
        else:
            raise InvalidRequest(
                f"{where} is of the type {item.type}{'' if item.role else ' without a role'}; this server takes "
                "message, function_call, function_call_output, compaction, item_reference and reasoning.",
                param=where,
            )
        places += [where] * (len(messages) - len(places))
    ignored = with_thoughts(messages, thoughts)
    return sent_along(messages, instructions, places, summary, behind, ignored)


def with_thoughts(messages: list[Message], thoughts: Iterable[tuple[int, str, str]]) -> list[str]:
    """Give the running turn's calls the thoughts that came with them, and return the places of all others.

    ``thoughts`` are the number of the message they precede, their place, and their text.
    """
    ignored = []
    last_question = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=0)
    for n, where, packed in thoughts:
        message = with_packed_thoughts(messages[n], packed) if last_question < n < len(messages) else None
        if message is None:
            ignored.append(where)
        else:
            messages[n] = message
    return ignored


def stored_turn(name: str) -> int:
    """Return the turn id of a response or of its message. Raises ResponseNotFound."""
    match = STORED_ID.fullmatch(name)
    if match is None or int(match[1]) > MAX_INT32:
        raise ResponseNotFound(name)
    return int(match[1])


def summary_text(summary: SentSummary) -> str:
    """Return a summary as an opaque text that clients send back."""
    return base64.urlsafe_b64encode(msgspec.json.encode(summary)).decode()


def summary_from(text: str, where: str) -> SentSummary:
    """Return the summary in a text of ``summary_text``. Raises InvalidRequest."""
    with suppress(ValueError, RecursionError):
        summary = msgspec.json.decode(base64.urlsafe_b64decode(text.encode()), type=SentSummary)
        if 1 <= summary.turns <= MAX_INT32 // 2 and 0 <= summary.messages <= MAX_INT32:
            return summary
    raise InvalidRequest(f"{where}.encrypted_content was not made by this server.", param=where)


def text_of(content: str | Sequence[Part] | None, where: str) -> str:
    """Return the text of a message. Raises InvalidRequest, which names any other part."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for n, part in enumerate(content):
        if part.type in PICTURES:
            continue
        text = part.refusal if part.type == "refusal" else part.text
        if text is None or part.type not in ("text", "input_text", "output_text", "refusal"):
            raise InvalidRequest(
                f"{where}[{n}] is of the type {part.type}; text and pictures are taken.", param=f"{where}[{n}]"
            )
        texts.append(text)
    return "\n".join(texts)


def _said(role: str, content: str | Sequence[Part] | None, where: str) -> Message:
    """Return a message with its text and its pictures, which only the user may send. Raises InvalidRequest."""
    pictures = []
    for n, part in enumerate(content if isinstance(content, list) else ()):
        if part.type in PICTURES:
            url = part.image_url.url if isinstance(part.image_url, ImageUrl) else part.image_url
            here = f"{where}[{n}]"
            if role != "user":
                raise InvalidRequest(f"{here} is a picture, which only a user's message may have.", param=here)
            if url is None:
                raise InvalidRequest(f"{here} has no image_url; files are not taken.", param=here)
            pictures.append(url)
    if pictures:
        check_pictures(pictures, taken=services().settings.current.model_images, field=where)
    return with_pictures({"role": role, "content": text_of(content, where)}, pictures)


def _message_of(message: ChatMessage, where: str, in_loop: bool) -> Message:
    if message.role == "function":
        name, text = (message.model_extra or {}).get("name"), text_of(message.content, f"{where}.content")
        return {"role": "tool", "tool_call_id": f"call_{name}", "content": text}
    result: Message = _said(message.role, message.content, f"{where}.content")
    if called := message.function_call:
        message.tool_calls = [Call(id=f"call_{called.name}", function=called)]
    if message.role == "assistant" and message.tool_calls:

        def with_thoughts(part: Thinking, sent: dict[str, Any]) -> dict[str, Any]:
            return sent | (part.thoughts if in_loop else {})

        calls = [
            with_thoughts(call, {"id": call.id, "type": "function"})
            | {"function": with_thoughts(call.function, call.function.model_dump(include={"name", "arguments"}))}
            for call in message.tool_calls
        ]
        result = with_thoughts(message, result | {"content": result["content"] or None, "tool_calls": calls})
    if message.role == "tool":
        result["tool_call_id"] = message.tool_call_id
    return result


def sent_along(
    messages: Sequence[Message],
    instructions: Iterable[str | None],
    places: Sequence[str],
    summary: SentSummary | None = None,
    behind: int | None = None,
    ignored: Iterable[str] = (),
) -> Sent:
    """Return the content of some messages. System messages at the start, and next to the question, are instructions."""
    last = max((n for n, message in enumerate(messages) if message["role"] in ("assistant", "tool")), default=-1)
    first = next((n for n, message in enumerate(messages) if message["role"] not in SYSTEM), len(messages))
    system_texts = [m["content"] for n, m in enumerate(messages) if m["role"] in SYSTEM and (n < first or n > last)]
    rest = [(m, places[n]) for n, m in enumerate(messages) if m["role"] not in SYSTEM or first <= n <= last]
    history = SentHistory([m for m, _ in rest], summary)
    lost = [rest[n][1] for n in history.lost]
    joined = "\n\n".join(text for text in (*instructions, *system_texts) if text and text.strip())
    return Sent(joined or None, history, behind, (*ignored, *lost))
