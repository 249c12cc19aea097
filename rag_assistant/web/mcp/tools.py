"""The tools offered to other programs, implemented by the same functions as the API; over HTTP, one message in and one
out; and llms.txt.
"""

import json
import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from flask import Blueprint, Response, render_template, request

from rag_assistant import __version__
from rag_assistant.answering.tool_arguments import (
    Arguments,
    ListDocuments,
    ReadDocument,
    SearchDocuments,
    argument,
    read_arguments,
    schema_of,
)
from rag_assistant.answering.tools import is_confirmation
from rag_assistant.conversations.prompts import origin_of, passages_text
from rag_assistant.history import OVERFLOW_CHOICES
from rag_assistant.records import ALL_ABILITIES, EVERYTHING, MAX_INT32, Ability, Turn
from rag_assistant.records.errors import AssistantError, ToolFailed
from rag_assistant.records.views import PassageAnswer, answer_data, conversation_view, data_of, receipt_data, turn_data
from rag_assistant.retrieval.postprocess import number_sources
from rag_assistant.retrieval.tokenize import query_words
from rag_assistant.services import Services
from rag_assistant.web.identity import identity
from rag_assistant.web.mcp.protocol import INVALID_PARAMS, RpcError, reply_to
from rag_assistant.web.request_bodies import QueryBody
from rag_assistant.web.routing import PUBLIC, READ, services

log = logging.getLogger(__name__)
blueprint = Blueprint("mcp", __name__)

MAX_LISTED = 100
ID = "a whole number, 1 or more"


class Ask(Arguments):
    """Ask the assistant a question about the user's documents, and get its answer with sources."""

    question: str = argument(..., "text with at least one visible character", "The question.")
    conversation_id: int | None = argument(
        None, f"{ID}, or null", "The conversation to continue; without it, a new one begins.", ge=1, le=MAX_INT32
    )
    max_history_turns: int | None = argument(
        None, "a whole number, 0 or more, or null", "How many earlier turns the model sees; null for all.", ge=0
    )
    on_overflow: str | None = argument(
        None,
        f"one of {', '.join(OVERFLOW_CHOICES)}, or null",
        "What happens if turns would be left out.",
        pattern=f"^({'|'.join(OVERFLOW_CHOICES)})$",
    )
    document_ids: list[int] | None = argument(
        None, "a list of document ids, or null", "Only these documents.", min_length=1, max_length=1000
    )
    tags: list[str] | None = argument(
        None, "a list of tags, or null", "Only documents with one of these tags.", min_length=1, max_length=50
    )


class ListConversations(Arguments):
    """List conversations, most recently used first."""

    query: str = argument("", "text", "Only conversations with these words.", max_length=2000)
    limit: int = argument(20, f"a whole number from 1 to {MAX_LISTED}", "How many at most.", ge=1, le=MAX_LISTED)


class ReadConversation(Arguments):
    """Read the newest turns of a conversation, with their ids."""

    conversation_id: int = argument(..., ID, "The conversation's id.", ge=1, le=MAX_INT32)
    limit: int = argument(10, f"a whole number from 1 to {MAX_LISTED}", "How many at most.", ge=1, le=MAX_LISTED)


class GetReceipt(Arguments):
    """Show exactly what the model was sent for a turn, and every turn that was left out, with the reason."""

    turn_id: int = argument(..., ID, "The turn's id, as ask and read_conversation give it.", ge=1, le=MAX_INT32)


class AssistantTools:
    """Lists and calls the tools that ``abilities`` allow; asking needs its own. Failures are returned as results."""

    def __init__(self, services: Services, abilities: Collection[Ability] = ALL_ABILITIES) -> None:
        self._services = services
        tools: dict[str, tuple[type[Arguments], Callable[[Any], dict[str, Any]]]] = {
            "ask": (Ask, self._ask),
            "search_documents": (SearchDocuments, partial(self._of_the_model, "search_documents")),
            "read_document": (ReadDocument, partial(self._of_the_model, "read_document")),
            "list_documents": (ListDocuments, partial(self._of_the_model, "list_documents")),
            "list_conversations": (ListConversations, self._list_conversations),
            "read_conversation": (ReadConversation, self._read_conversation),
            "get_receipt": (GetReceipt, self._receipt),
        }
        self._tools = {name: tool for name, tool in tools.items() if name != "ask" or "ask" in abilities}

    def listed(self) -> list[dict[str, Any]]:
        functions = {name: schema_of(name, kind)["function"] for name, (kind, _) in self._tools.items()}
        return [
            {
                "name": name,
                "description": function["description"],
                "inputSchema": function["parameters"],
                # Only asking stores something, and nothing destroys anything.
                "annotations": {"readOnlyHint": name != "ask", "destructiveHint": False, "openWorldHint": False},
            }
            for name, function in functions.items()
        ]

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        """Return the result of a call. Raises RpcError for an unknown tool."""
        if name not in self._tools:
            raise RpcError(INVALID_PARAMS, f'There is no tool "{name}". Available: {", ".join(self._tools)}.')
        kind, run = self._tools[name]
        try:
            return run(read_arguments(kind, json.dumps({} if arguments is None else arguments)))
        except AssistantError as error:
            return _result(str(error), failed=True)
        except Exception:
            log.exception("The tool %s failed", name)
            return _result("The tool failed; see the server log.", failed=True)

    def _ask(self, arguments: Ask) -> dict[str, Any]:
        assistant = self._services.assistant
        # Confirming is refused: the other program may act without a person.
        if arguments.conversation_id is not None and is_confirmation(arguments.question) is not None:
            last = self._services.turns.page(arguments.conversation_id, 1)
            if last and last[0].waiting is not None:
                raise ToolFailed(f"Turn {last[0].number} asks a person, who can answer on the page or over the API.")
        question = QueryBody.model_validate(arguments.model_dump(exclude_unset=True)).as_question(None)
        turn = assistant.wait(assistant.ask(question).id)
        return _result(_answer_text(turn), turn_data(turn), failed=turn.error_type is not None)

    def _of_the_model(self, name: str, arguments: Arguments) -> dict[str, Any]:
        """Call a tool that the model may call, too."""
        result = self._services.tools.run(name, arguments.model_dump_json(), EVERYTHING)
        passages = number_sources(result.passages)
        text = "\n".join(part for part in (result.text, passages_text(passages) if passages else "") if part)
        listed = [answer_data(PassageAnswer, one) for one in result.passages]
        return _result(text, {"passages": listed} if listed else None)

    def _list_conversations(self, arguments: ListConversations) -> dict[str, Any]:
        manager = self._services.conversations
        if arguments.query.strip():
            conversations = [hit.conversation for hit in manager.find(query_words(arguments.query), arguments.limit)]
        else:
            conversations = manager.page(arguments.limit, None)
        lines = [f"{one.id}: {one.title} (turns: {one.turns})" for one in conversations]
        listed = [data_of(conversation_view(one)) for one in conversations]
        return _result("\n".join(lines) or "There are none.", {"conversations": listed})

    def _read_conversation(self, arguments: ReadConversation) -> dict[str, Any]:
        self._services.conversations.get(arguments.conversation_id)
        turns = self._services.turns.page(arguments.conversation_id, arguments.limit)
        text = "\n\n".join(f"Turn {turn.number} (id {turn.id})\nQ: {turn.question}\nA: {turn.answer}" for turn in turns)
        return _result(text or "It has no turns.", {"turns": [turn_data(turn) for turn in turns]})

    def _receipt(self, arguments: GetReceipt) -> dict[str, Any]:
        turn = self._services.turns.get(arguments.turn_id)
        data = receipt_data(turn, self._services.turns.receipt(turn.id))
        return _result(json.dumps(data, ensure_ascii=False), data)


def _answer_text(turn: Turn) -> str:
    """Return an answer with its cited sources, and what of the conversation was left out."""
    sources = [f"[{source.n}] {origin_of(source)}" for source in turn.listed_sources]
    listed = "\n".join(["Sources:", *sources]) if sources else None
    notice = (turn.history or {}).get("notice")
    sentences = (one.sentence for one in turn.disagreements)
    return "\n\n".join(filter(None, (turn.answer, turn.error_message, listed, *sentences, notice)))


def _result(text: str, data: dict[str, Any] | None = None, *, failed: bool = False) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
    return result if data is None else result | {"structuredContent": data}


@blueprint.post("/mcp", policy=READ)
def mcp() -> Response:
    """Answer a message of a client."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    reply = reply_to(request.get_data(), AssistantTools(services(), identity().abilities), headers)
    if reply.message is None:
        return Response(status=reply.status)
    return Response(json.dumps(reply.message), reply.status, content_type="application/json")


@blueprint.get("/llms.txt", policy=PUBLIC)
def llms_txt() -> Response:
    """Describe this server and the addresses that programs can use."""
    tools = [tool["name"] for tool in AssistantTools(services()).listed()]
    text = render_template("llms.txt", version=__version__, tools=tools)
    return Response(text, content_type="text/plain; charset=utf-8")
