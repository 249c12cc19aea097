"""What each route takes and gives, by its endpoint: what the route itself does not tell, and an example that runs.

A route without a line here fails a test, and so does one whose view reads another body than is said here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from pydantic import BaseModel

import rag_assistant.web.request_bodies as bodies
from rag_assistant.web.openapi import account_answers as accounts
from rag_assistant.web.openapi import conversation_answers as conversations
from rag_assistant.web.openapi import document_answers as documents
from rag_assistant.web.openapi import openai_answers as openai
from rag_assistant.web.openapi import server_answers as server
from rag_assistant.web.openapi import turn_answers as turns
from rag_assistant.web.v1 import bodies as v1

SEARCH_LIMIT = {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}
ONE_TEXT = {"type": "string"}
EVENTS = {
    "start": turns.StartEvent,
    "update": turns.StartEvent,
    "token": turns.TokenEvent,
    "state": turns.StateEvent,
    "step": turns.StepEvent,
    "end": turns.TurnAnswer,
    "failed": turns.TurnAnswer,
    "error": turns.TurnAnswer,
}
CHUNKS = {"": openai.ChatChunk}
MODEL = "rag-assistant"
ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "How large may a document be?"}]}


class Operation(Struct, frozen=True):
    """What a route takes and gives.

    ``answer`` is a type of answers.py, a media type for what is no JSON, ``None`` for nothing. ``events`` are those of
    its stream: alone, or, where there is an ``answer``, if the body asks for one. ``own`` are schemas of parameters
    that are special here. ``example`` is a body that it takes, ``query`` what stands behind ``?``; of a form, the body
    has its fields. ``file``: the body is a file, also in a form. ``asks``: a model is asked, which may fail.
    ``accounts``: refused where there are none.
    """

    answer: type | str | None = None
    status: int = 200
    body: type[BaseModel] | None = None
    optional: bool = False
    form: bool = False
    file: bool = False
    example: Mapping[str, Any] | None = None
    query: str = ""
    headers: tuple[str, ...] = ()
    events: Mapping[str, type] = field(default_factory=dict)
    own: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    asks: bool = False
    accounts: bool = False


def _action(answer: type | None, status: int = 200, *, asks: bool = False) -> Operation:
    """Return what needs nothing said."""
    return Operation(answer, status, bodies.NoFields, optional=True, asks=asks)


OPERATIONS: dict[str, Operation] = {
    "api.query": Operation(
        turns.TurnAnswer,
        body=bodies.QueryBody,
        example={"question": "How large may a document be?"},
        headers=("Idempotency-Key",),
        asks=True,
    ),
    "api.query_stream": Operation(
        body=bodies.QueryBody,
        example={"question": "How large may a document be?", "max_history_turns": 3},
        headers=("Idempotency-Key",),
        events=EVENTS,
        asks=True,
    ),
    "api.turn": Operation(turns.TurnAnswer),
    "api.turn_stream": Operation(headers=("Last-Event-ID",), events=EVENTS),
    "api.stop": _action(turns.TurnAnswer),
    "api.retry": Operation(turns.TurnAnswer, 202, bodies.RetryBody, optional=True, example={"quotes": True}),
    "api.regenerate": _action(turns.TurnAnswer, 202),
    "api.versions": Operation(turns.VersionsAnswer),
    "api.choose_version": _action(turns.TurnAnswer),
    "api.change_turn": Operation(turns.TurnAnswer, body=bodies.ChangeTurnBody, example={"pinned": True}),
    "api.erase_turn": Operation(turns.TurnAnswer, query="permanently=1"),
    "api.receipt": Operation(turns.ReceiptAnswer),
    "api.image": Operation("image/png"),
    "api.search": Operation(documents.SearchAnswer, query="q=large+document&limit=3", own={"limit": SEARCH_LIMIT}),
    "ratings_api.ratings": Operation(conversations.RatingsAnswer),
    "ratings_api.rate": Operation(
        turns.TurnAnswer, body=bodies.RatingBody, example={"rating": "up", "right_answer": "50 MB."}
    ),
    "ratings_api.unrate": Operation(turns.TurnAnswer),
    "conversations_api.conversations": Operation(conversations.ConversationsAnswer, query="limit=2"),
    "conversations_api.new_conversation": Operation(
        conversations.ConversationAnswer,
        201,
        bodies.NewConversationBody,
        optional=True,
        example={"title": "Lighthouses"},
    ),
    "conversations_api.conversation": Operation(conversations.ViewedConversation),
    "conversations_api.change_conversation": Operation(
        conversations.ViewedConversation,
        body=bodies.ChangeConversationBody,
        example={"title": "Keepers", "pinned": True},
    ),
    "conversations_api.delete_conversation": Operation(status=204),
    "conversations_api.restore_conversation": _action(conversations.ConversationAnswer),
    "conversations_api.purge_conversation": _action(None, 204),
    "conversations_api.turns": Operation(conversations.TurnsAnswer, query="limit=2"),
    "conversations_api.export": Operation("text/markdown", query="format=markdown"),
    "archive_api.import_conversations": Operation(
        conversations.ImportAnswer,
        file=True,
        example={
            "conversationId": "one",
            "title": "Geese",
            "messages": [
                {"messageId": "1", "isCreatedByUser": True, "text": "What do geese do?"},
                {"messageId": "2", "parentMessageId": "1", "isCreatedByUser": False, "text": "They hiss."},
            ],
        },
    ),
    "conversations_api.preview": Operation(conversations.ViewAnswer, query="max_history_turns=1"),
    "conversations_api.operation": Operation(conversations.OperationAnswer),
    "conversations_api.clear": _action(conversations.ViewedConversation),
    "conversations_api.reset": _action(conversations.ViewedConversation),
    "conversations_api.compact": _action(conversations.ViewedConversation, asks=True),
    "conversations_api.undo": _action(conversations.ViewedConversation),
    "conversations_api.edit_summary": Operation(
        conversations.ViewedConversation, body=bodies.SummaryBody, example={"text": "They spoke of lighthouses."}
    ),
    "conversations_api.command": Operation(
        conversations.CommandAnswer, body=bodies.CommandBody, example={"command": "/history"}
    ),
    "documents_api.add": Operation(
        documents.DocumentAnswer, 202, bodies.UploadFields, form=True, example={"tags": "sea, light"}
    ),
    "documents_api.add_web_page": Operation(
        documents.DocumentAnswer, 202, bodies.WebPageBody, example={"url": "https://example.org/lamp.html"}
    ),
    "documents_api.fetch_again": _action(documents.DocumentAnswer, 202),
    "documents_api.documents": Operation(documents.DocumentsAnswer, query="state=ready", own={"tag": ONE_TEXT}),
    "documents_api.document": Operation(documents.DocumentAnswer),
    "documents_api.sources": Operation(documents.OriginsAnswer),
    "documents_api.tags": Operation(documents.TagsAnswer),
    "documents_api.change": Operation(
        documents.DocumentAnswer, body=bodies.ChangeDocumentBody, example={"name": "lamp.md", "tags": ["sea"]}
    ),
    "documents_api.cancel": _action(documents.DocumentAnswer),
    "documents_api.retry": _action(documents.DocumentAnswer, 202),
    "documents_api.text": Operation(documents.TextAnswer),
    "documents_api.delete": Operation(status=204),
    "documents_api.file": Operation("application/octet-stream"),
    "libraries_api.libraries": Operation(documents.LibrariesAnswer),
    "libraries_api.add": Operation(
        documents.LibraryAnswer, 201, bodies.NewLibraryBody, example={"name": "Harbour"}, accounts=True
    ),
    "libraries_api.change": Operation(
        documents.LibraryAnswer, body=bodies.ChangeLibraryBody, example={"everyone": "read"}, accounts=True
    ),
    "libraries_api.share": Operation(
        documents.LibraryAnswer, body=bodies.ShareBody, example={"person": "ben", "access": "read"}, accounts=True
    ),
    "libraries_api.delete": Operation(status=204, accounts=True),
    "account_api.account": Operation(accounts.AccountAnswer, accounts=True),
    "sharing_api.links": Operation(accounts.LinksAnswer, accounts=True),
    "sharing_api.make": Operation(
        accounts.NewLinkAnswer,
        201,
        bodies.NewLinkBody,
        optional=True,
        example={"with_sources": True},
        accounts=True,
    ),
    "sharing_api.revoke": Operation(status=204, accounts=True),
    "sharing_api.shared": Operation(accounts.SharedAnswer, query="link=secret", accounts=True),
    "archive_api.export": Operation("application/zip"),
    "model_api.test": _action(server.ModelTestAnswer, asks=True),
    "healthz": Operation(server.HealthAnswer),
    "readyz": Operation(server.ReadyAnswer),
    "settings": Operation(server.SettingsAnswer),
    "settings_version": Operation(server.SettingsVersion),
    "openapi.openapi_json": Operation("application/json"),
    "openai.models": Operation(openai.Models),
    "openai.model": Operation(openai.Model),
    "openai.chat_completions": Operation(
        openai.ChatCompletion,
        body=v1.ChatBody,
        example=ASKED,
        headers=("X-Conversation-Id", "Idempotency-Key"),
        events=CHUNKS,
        asks=True,
    ),
    "openai.embeddings": Operation(
        openai.Embeddings, body=v1.EmbeddingsBody, example={"model": "rag-assistant-embeddings", "input": ["lamp"]}
    ),
    "openai.create_response": Operation(
        openai.ResponseAnswer,
        body=v1.ResponseBody,
        example={"model": MODEL, "input": "How large may a document be?"},
        headers=("X-Conversation-Id", "Idempotency-Key"),
        events={"response.*": openai.ResponseEvent},
        asks=True,
    ),
    "openai.compact": Operation(
        openai.CompactedHistory,
        body=v1.CompactBody,
        example={"model": MODEL, "previous_response_id": "resp_1"},
        asks=True,
    ),
    "openai.response": Operation(openai.ResponseAnswer),
    "openai.input_items": Operation(openai.InputItems),
    "openai.cancel_response": _action(openai.ResponseAnswer),
    "openai.delete_response": Operation(openai.DeletedResponse),
}
