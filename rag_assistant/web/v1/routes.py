"""The routes of OpenAI's protocol: each parses a request, asks, and returns the answer in that shape."""

import base64
from typing import Any, Literal

from flask import Response, jsonify, request

from rag_assistant.history import estimate_tokens
from rag_assistant.records.errors import InvalidRequest, ModelNotFound
from rag_assistant.web.request_parsing import idempotency_key, take_pictures
from rag_assistant.web.routing import ASK, READ, services
from rag_assistant.web.v1.answers import Asked, about, streamed, whole
from rag_assistant.web.v1.bodies import DESCRIBED, ChatBody, EmbeddingsBody, OpenAIBody, read_openai
from rag_assistant.web.v1.chat import chunks, completion
from rag_assistant.web.v1.messages import frames, message
from rag_assistant.web.v1.messages_body import MessagesBody, read_messages
from rag_assistant.web.v1.reading import (
    MODES,
    OF_PROJECT,
    Sent,
    conversation_named,
    ignored_fields,
    mode_of,
    projects_by_model,
    question_of,
    read_chat,
    refuse_stored_calls,
)
from rag_assistant.web.v1.response_routes import blueprint, tokens_sent
from rag_assistant.web.v1.schemas import ChatChunk, ChatCompletion, MessageAnswer, MessageEvent, Model

EMBEDDINGS_MODEL = "rag-assistant-embeddings"


@blueprint.get("/models", policy=READ, answer={"object": Literal["list"], "data": list[Model]})
def models() -> Response:
    """List the ways of answering and the projects, each as a model."""
    return jsonify(object="list", data=[_model(name) for name in (*MODES, *sorted(projects_by_model()))])


@blueprint.get("/models/<path:name>", policy=READ, answer=Model)
def model(name: str) -> Response:
    """Return one model."""
    mode_of(name)
    return jsonify(_model(name))


@blueprint.post(
    "/chat/completions",
    policy=ASK,
    answer=ChatCompletion,
    body=ChatBody,
    headers=("X-Conversation-Id", "Idempotency-Key"),
    events={"": ChatChunk},
)
def chat_completions() -> Response:
    """Answer the last message of a chat; the window applies to those before it, or to a stored conversation."""
    take_pictures()
    body, ignored = read_openai(ChatBody)
    incoming = _asked(body, read_chat(body), body.max_completion_tokens or body.max_tokens, ignored)
    old, include_usage = bool(body.functions), bool(body.stream_options and body.stream_options.include_usage)
    if not body.stream:
        return whole(incoming, lambda data, facts: completion(data, facts, old))
    return streamed(incoming, lambda events, facts: chunks(events, facts, include_usage, old))


@blueprint.post(
    "/messages",
    policy=ASK,
    answer=MessageAnswer,
    body=MessagesBody,
    headers=("X-Conversation-Id", "Idempotency-Key"),
    params=("beta",),
    events={"*": MessageEvent},
)
def messages() -> Response:
    """Answer the last message in Anthropic's protocol; the window applies as to a chat."""
    take_pictures()
    body, ignored = read_openai(MessagesBody)
    incoming = _asked(body, read_messages(body), body.max_tokens, ignored)
    return streamed(incoming, frames) if body.stream else whole(incoming, message)


@blueprint.post("/messages/count_tokens", policy=ASK, params=("beta",), answer={"input_tokens": int}, body=MessagesBody)
def count_tokens() -> Response:
    """Count the tokens of messages with what goes along; what a window would leave out is counted, too."""
    body, _ = read_openai(MessagesBody)
    return jsonify(input_tokens=tokens_sent(body, read_messages(body)))


@blueprint.post(
    "/embeddings",
    policy=ASK,
    answer={"object": Literal["list"], "data": list[dict[str, Any]], "model": str, "usage": dict[str, int]},
    body=EmbeddingsBody,
)
def embeddings() -> Response:
    """Embed texts with the embedding model that searches the documents."""
    body, _ = read_openai(EmbeddingsBody)
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


def _asked(body: OpenAIBody, sent: Sent, max_answer_tokens: int | None, ignored: list[str]) -> Asked:
    """Return what the messages of a request ask."""
    ignored += [*sent.ignored, *ignored_fields(body)]
    named = conversation_named(request.headers.get("X-Conversation-Id"), body)
    conversation_id = named if isinstance(named, int) else None
    question = question_of(body, sent, max_answer_tokens, idempotency_key(), conversation_id)
    refuse_stored_calls(question, sent, stored=named is not None)
    stored = named is not None
    return Asked(question, sent, about(body.model, ignored, stored=stored, manages_context=bool(body.edits)))


def _model(name: str) -> dict[str, Any]:
    described = DESCRIBED.get(name, DESCRIBED[OF_PROJECT])
    own = {"id": name, "object": "model", "created": 0, "owned_by": "rag-assistant", "description": described}
    return own | {"context_length": services().models.listed_endpoint().context_tokens}
