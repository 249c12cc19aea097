"""The routes of OpenAI's protocol, and Anthropic's: each parses a request, asks, and returns the answer in that shape.

Stored responses are turns of conversations; other requests come with the turns before them.
"""

import base64
import uuid
from collections.abc import Iterable
from typing import Any

from flask import Blueprint, Response, jsonify, request
from msgspec.structs import replace

from rag_assistant.conversations.viewed_history import SentSummary, ViewedHistory
from rag_assistant.history import estimate_tokens
from rag_assistant.llm.calibration import estimated_tokens
from rag_assistant.records import Conversation, Message, ModelRequest, PastTurn, Question, Turn
from rag_assistant.records.errors import InvalidRequest, ModelNotFound, ResponseNotFound, TurnNotFound
from rag_assistant.records.views import turn_data
from rag_assistant.web.request_parsing import take_pictures
from rag_assistant.web.routing import ASK, READ, services
from rag_assistant.web.v1 import bodies, reading
from rag_assistant.web.v1.answers import Asked, about, streamed, whole
from rag_assistant.web.v1.messages import MessagesBody, message, message_frames, read_messages
from rag_assistant.web.v1.views import chunks, compaction, completion, items_of, resource, response_frames

blueprint = Blueprint("openai", __name__, url_prefix="/v1")
STORED_ALONE = "store is false, but {} continues a stored conversation, which keeps what is asked in it."
# Fields of a request that its response repeats as they are.
REPEATED = (
    *("instructions", "previous_response_id", "max_output_tokens", "temperature", "metadata"),
    *("tools", "tool_choice", "parallel_tool_calls"),
)
TRUNCATED: dict[str | None, str] = {"ask": "disabled"}
EMBEDDINGS_MODEL = "rag-assistant-embeddings"


@blueprint.get("/models", policy=READ, answer="ModelsAnswer")
def models() -> Response:
    """List the ways of answering and the projects, each as a model."""
    names = (*reading.MODES, *sorted(reading.projects_by_model()))
    return jsonify(object="list", data=list(map(_model, names)))


@blueprint.get("/models/<path:name>", policy=READ, answer="Model")
def model(name: str) -> Response:
    """Return one model."""
    reading.mode_of(name)
    return jsonify(_model(name))


@blueprint.post(
    "/chat/completions",
    policy=ASK,
    answer="ChatCompletion",
    body=bodies.ChatBody,
    headers=("X-Conversation-Id", "Idempotency-Key"),
    events={"": "ChatChunk"},
)
def chat_completions() -> Response:
    """Answer the last message of a chat; the window applies to those before it, or to a stored conversation."""
    take_pictures()
    body, ignored = bodies.read_openai(bodies.ChatBody)
    incoming = _asked(body, reading.read_chat(body), body.max_completion_tokens or body.max_tokens, ignored)
    old, include_usage = bool(body.functions), bool(body.stream_options and body.stream_options.include_usage)
    if not body.stream:
        return whole(incoming, lambda data, facts: completion(data, facts, old))
    return streamed(incoming, lambda events, facts: chunks(events, facts, include_usage, old))


@blueprint.post(
    "/messages",
    policy=ASK,
    answer="MessageAnswer",
    body=MessagesBody,
    headers=("X-Conversation-Id", "Idempotency-Key"),
    params=("beta",),
    events={"*": "MessageEvent"},
)
def messages() -> Response:
    """Answer the last message in Anthropic's protocol; the window applies as to a chat."""
    take_pictures()
    body, ignored = bodies.read_openai(MessagesBody)
    incoming = _asked(body, read_messages(body), body.max_tokens, ignored)
    return streamed(incoming, message_frames) if body.stream else whole(incoming, message)


@blueprint.post("/messages/count_tokens", policy=ASK, params=("beta",), answer="CountTokensAnswer", body=MessagesBody)
def count_tokens() -> Response:
    """Count the tokens of messages with what goes along; what a window would leave out is counted, too."""
    body, _ = bodies.read_openai(MessagesBody)
    return jsonify(input_tokens=tokens_sent(body, read_messages(body)))


@blueprint.post("/embeddings", policy=ASK, answer="EmbeddingsAnswer", body=bodies.EmbeddingsBody)
def embeddings() -> Response:
    """Embed texts with the embedding model that searches the documents."""
    body, _ = bodies.read_openai(bodies.EmbeddingsBody)
    embedder = services().embedders.configured()
    if body.model not in (EMBEDDINGS_MODEL, embedder.name):
        raise ModelNotFound(body.model, f"{EMBEDDINGS_MODEL}, {embedder.name}")
    width = len(embedder.probe)
    if body.dimensions not in (None, width):
        raise InvalidRequest(f"dimensions is {body.dimensions}; the embedding model has {width}.", param="dimensions")
    texts = [body.input] if isinstance(body.input, str) else body.input
    vectors = embedder.embed(texts)
    as_text = body.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": n,
            "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode() if as_text else vector.tolist(),
        }
        for n, vector in enumerate(vectors)
    ]
    tokens = sum(map(estimate_tokens, texts))
    return jsonify(object="list", data=data, model=body.model, usage={"prompt_tokens": tokens, "total_tokens": tokens})


def _asked(body: bodies.OpenAIBody, sent: reading.Sent, max_answer_tokens: int | None, ignored: list[str]) -> Asked:
    """Return what the messages of a request ask."""
    ignored += [*sent.ignored, *reading.ignored_fields(body)]
    named = reading.conversation_named(request.headers.get("X-Conversation-Id"), body)
    stored = named is not None
    question = reading.question_of(body, sent, max_answer_tokens, named, continues=stored)
    return Asked(question, sent, about(body.model, ignored, stored=stored, manages_context=bool(body.edits)))


def _model(name: str) -> dict[str, Any]:
    described = bodies.DESCRIBED.get(name, bodies.DESCRIBED[reading.OF_PROJECT])
    own = {"id": name, "object": "model", "created": 0, "owned_by": "rag-assistant", "description": described}
    return own | {"context_length": services().models.listed_endpoint().context_tokens}


@blueprint.post(
    "/responses",
    policy=ASK,
    answer="ResponseAnswer",
    body=bodies.ResponseBody,
    headers=("X-Conversation-Id", "Idempotency-Key"),
    events={"response.*": "ResponseEvent"},
)
def create_response() -> Response:
    """Answer the last message of the input; the window applies to those before it, or to a stored conversation."""
    take_pictures()
    body, ignored = bodies.read_openai(bodies.ResponseBody)
    sent = reading.read_input(body.input, [body.instructions])
    ignored += [*sent.ignored, *reading.ignored_fields(body)]
    question, stored = _question_of(body, sent)
    wanted = {name: bodies.as_sent(getattr(body, name)) for name in REPEATED}
    wanted["truncation"] = body.truncation or TRUNCATED.get(services().settings.current.on_overflow)
    if body.text is not None and body.text.format is not None:
        wanted["text"] = {"format": body.text.format.as_sent()}
    incoming = Asked(question, sent, about(body.model, ignored, stored=stored, manages_context=bool(body.edits)))
    if body.stream:
        return streamed(incoming, lambda events, facts: response_frames(events, facts, wanted))
    return whole(incoming, lambda data, facts: resource(data, facts, wanted))


def _question_of(body: bodies.ResponseBody, sent: reading.Sent) -> tuple[Question, bool]:
    """Return the question in a request, and whether it is stored: unless other turns came along, it is."""
    named = reading.conversation_named(request.headers.get("X-Conversation-Id"), body)
    behind = sent.behind if body.previous_response_id is None else reading.stored_turn(body.previous_response_id)
    continues = "previous_response_id" if behind is not None else "a conversation id" if named is not None else None
    if continues is not None and body.store is False:
        raise InvalidRequest(STORED_ALONE.format(continues), param="store")
    if behind is not None and named is not None:
        raise InvalidRequest("Send previous_response_id or a conversation id, not both.", param="previous_response_id")
    question = reading.question_of(body, sent, body.max_output_tokens, named, continues=continues is not None)
    if behind is not None:
        turn = _turn_of(f"resp_{behind}")
        question = replace(question, conversation_id=turn.conversation_id)
        last = services().turns.page(turn.conversation_id, 1, turn.number + 2)[-1]
        # After another turn than the last, it is asked in a branch.
        return question if last.number == turn.number else replace(question, edits_turn=last.id), True
    uses_tools = sent.history.iterations or "tools" in (question.options.fields or {})
    alone = sent.history.conversation.turns == 0 and not uses_tools
    return question, named is not None or (alone and body.store is not False)


@blueprint.post("/responses/input_tokens", policy=ASK, answer="InputTokensAnswer", body=bodies.ResponseBody)
def input_tokens() -> Response:
    """Count the tokens of an input with what goes along; what a window would leave out is counted, too."""
    body, _ = bodies.read_openai(bodies.ResponseBody)
    before = None
    if body.previous_response_id is not None:
        before = services().conversations.get(_turn_of(body.previous_response_id).conversation_id)
    count = tokens_sent(body, reading.read_input(body.input, [body.instructions]), before)
    return jsonify(object="response.input_tokens", input_tokens=count)


def tokens_sent(body: bodies.OpenAIBody, sent: reading.Sent, stored: Conversation | None = None) -> int:
    """Estimate the tokens of all turns that a request brings or continues, with its instructions and tools."""
    models, running = services().models, [{"role": "user", "content": sent.history.question}]
    history: ViewedHistory = services().history if stored else sent.history
    conversation = stored or sent.history.conversation
    past = _messages(history.past(conversation, conversation.turns + 1, None))
    system = [{"role": "system", "content": sent.instructions}] if sent.instructions else []
    whole = ModelRequest((*system, *past, *running, *sent.history.iterations), fields=body.endpoint_fields())
    return round(estimated_tokens(whole) * models.calibration.ratio(models.known_endpoint()))


@blueprint.get(
    "/responses/<response_id>",
    policy=READ,
    params=("include", "include_obfuscation", "stream", "starting_after"),
    answer="ResponseAnswer",
)
def response(response_id: str) -> Response:
    """Return a stored response as it is now."""
    return jsonify(_resource_of(_turn_of(response_id)))


@blueprint.get(
    "/responses/<response_id>/input_items",
    policy=READ,
    params=("include", "limit", "order", "after"),
    answer="InputItemsAnswer",
)
def input_items(response_id: str) -> Response:
    """Return the question that a stored response answers."""
    turn = _turn_of(response_id)
    content = [{"type": "input_text", "text": turn.question}]
    item = {"type": "message", "id": f"msg_in_{turn.id}", "status": "completed", "role": "user", "content": content}
    return jsonify(object="list", data=[item], first_id=item["id"], last_id=item["id"], has_more=False)


@blueprint.post("/responses/<response_id>/cancel", policy=ASK, answer="ResponseAnswer")
def cancel_response(response_id: str) -> Response:
    """Stop a running answer; the text so far is kept."""
    return jsonify(_resource_of(services().assistant.stop(_turn_of(response_id).id)))


@blueprint.delete("/responses/<response_id>", policy=ASK, answer="DeleteResponseAnswer")
def delete_response(response_id: str) -> Response:
    """Erase a stored response permanently, with its question."""
    services().eraser.erase(_turn_of(response_id).id)
    return jsonify(id=response_id, object="response", deleted=True)


@blueprint.post("/responses/compact", policy=ASK, answer="CompactedHistory", body=bodies.CompactBody)
def compact() -> Response:
    """Summarise the older half of a history, whether it is stored or came along."""
    body, ignored = bodies.read_openai(bodies.CompactBody)
    reading.mode_of(body.model)
    if (body.input is None) == (body.previous_response_id is None):
        raise InvalidRequest("Send either input or previous_response_id: the history to be summarised.", param="input")
    if body.input is None:
        turn = _turn_of(body.previous_response_id or "")
        history: ViewedHistory = services().history
        running, before = [], services().conversations.get(turn.conversation_id)
        after, note = services().history_actions.compact(before.id)
    else:
        sent = reading.read_input(body.input, [body.instructions]).history
        history, before = sent, sent.conversation
        running = [{"role": "user", "content": sent.question}, *sent.iterations] if sent.question else []
        after, note = services().history_actions.compact(sent)
    summarised = history.between(before, before.view_start, after.view_start - 1)
    items = items_of([*_messages(history.past(after, after.turns + 1, None)), *running])
    run = next(run for run in after.standing_runs if run["reason"] == "summarised")
    summary = SentSummary(after.summary.text if after.summary else "", run["turns"], run["messages"])
    tokens = sum(estimate_tokens(message.get("content") or "") for message in _messages(summarised))
    result = {"summary": summary.text, "turns": summary.turns, "note": note, "ignored": ignored}
    own = about(body.model, own_id=f"x{uuid.uuid4().hex}", stored=False)
    return jsonify(
        compaction(own, reading.summary_text(summary), items, (tokens, estimate_tokens(summary.text)), result)
    )


def _messages(turns: Iterable[PastTurn]) -> list[Message]:
    return [message for turn in turns for message in turn.messages]


def _turn_of(response_id: str) -> Turn:
    """Return the turn of a stored response. Raises ResponseNotFound, also if it was erased."""
    try:
        turn = services().turns.get(reading.stored_turn(response_id))
    except TurnNotFound as error:
        raise ResponseNotFound(response_id) from error
    if turn.status == "erased":
        raise ResponseNotFound(response_id)
    return turn


def _resource_of(turn: Turn) -> dict[str, Any]:
    options = turn.options
    before = services().turns.page(turn.conversation_id, 1, turn.number)
    wanted = {
        "instructions": options.instructions,
        "previous_response_id": f"resp_{before[0].id}" if before else None,
        "truncation": TRUNCATED.get(turn.on_overflow),
        "max_output_tokens": options.max_answer_tokens,
        "temperature": options.temperature,
    }
    project = services().conversations.get(turn.conversation_id).project
    plain = reading.OF_PROJECT + project.name if project else next(iter(reading.MODES))
    model = next((name for name, mode in reading.MODES.items() if mode == options.mode), plain)
    own = replace(about(model, own_id=str(turn.id), stored=True), created=int(turn.created_at.timestamp()))
    return resource(turn_data(turn), own, wanted)
