"""The tools for a model that searches by itself: search, read, list and delete documents.

Errors go to the model as results. A destructive tool does nothing by itself: it describes the action, and a person
confirms it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rag_assistant.answering.tool_arguments import (
    Arguments,
    DeleteDocuments,
    ListDocuments,
    ProposeNote,
    ReadDocument,
    SearchDocuments,
    ToolResult,
    object_in,
    quoted_name,
    read_arguments,
    schema_of,
)
from rag_assistant.conversations.model_profile import PROPOSES_NOTE
from rag_assistant.conversations.prompts import passages_text
from rag_assistant.llm.tool_calls import calls_in_text
from rag_assistant.records import Message, ModelReply, Passage, Scope, Turn
from rag_assistant.records.errors import AssistantError, DocumentNotFound, LibraryReadOnly, ToolFailed
from rag_assistant.retrieval.postprocess import number_sources
from rag_assistant.runtime.telemetry.steps import step

if TYPE_CHECKING:
    from rag_assistant.answering.remote_tools import RemoteTools
    from rag_assistant.records import Document
    from rag_assistant.retrieval.search import Retriever
    from rag_assistant.storage.documents.documents import DocumentStore

log = logging.getLogger(__name__)

# Our only tool that needs confirmation.
DELETES = "delete_documents"
ASKING = {DELETES, PROPOSES_NOTE}
MAX_CALLS_AT_ONCE = 16
THREADS = 4
MAX_LISTED = 100
DOCUMENTS_NAMED = 5
PASSAGES = "<passages>\n{}\n</passages>"

LEGAL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
WORDS = re.compile(r"(?:[^\W_]|')+")
YES = frozenset("yes y ok okay confirm confirmed delete ja oui si sí".split()) | {
    "yes please", "yes delete", "yes delete it", "yes delete them", "delete it", "delete them", "do it", "go ahead",
}  # fmt: skip
NO = frozenset("no n nope cancel cancelled stop nein non abort".split()) | {
    "no thanks", "don't", "do not", "do not delete", "don't delete", "keep it", "keep them", "never mind",
}  # fmt: skip


class Tools:
    """Runs what the model calls: our own tools, and those of other programs."""

    def __init__(
        self, documents: DocumentStore, retriever: Retriever, remove: Callable[[int], None], remote: RemoteTools
    ) -> None:
        self._documents = documents
        self._retriever = retriever
        self._remove = remove
        self.remote = remote
        self._tools: dict[str, tuple[type[Arguments], Callable[[Any, Scope], ToolResult]]] = {
            "search_documents": (SearchDocuments, self._search),
            "read_document": (ReadDocument, self._read),
            "list_documents": (ListDocuments, self._list),
            DELETES: (DeleteDocuments, self._ask_to_delete),
            PROPOSES_NOTE: (ProposeNote, self._propose_note),
        }

    @property
    def schemas(self) -> tuple[dict[str, Any], ...]:
        """The schemas of the current tools, in the OpenAI format."""
        own = (schema_of(name, kind) for name, (kind, _) in self._tools.items())
        return (*own, *self.remote.schemas().values())

    def without_confirmations(self) -> Tools:
        """Return the tools without those that need confirmation, for answers that nobody can come back to."""
        fewer = copy(self)
        fewer._tools = {name: tool for name, tool in self._tools.items() if name not in ASKING}
        fewer.remote = self.remote.without_confirmations()
        return fewer

    def run_all(
        self, calls: Sequence[dict[str, Any]], scope: Scope, offered: Sequence[dict[str, Any]]
    ) -> list[ToolResult]:
        """Run calls in the OpenAI format in parallel, and return their results in the same order.

        The tools only see the documents of the scope. Errors are results, too.
        """
        names = [tool["function"]["name"] for tool in offered]
        with ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="tool") as pool:
            # Each in its own context, since two threads can't share one.
            begun = [
                pool.submit(copy_context().run, self._run, call, scope, names) for call in calls[:MAX_CALLS_AT_ONCE]
            ]
            results = [one.result() for one in begun]
        too_many = ToolResult(f"Error: at most {MAX_CALLS_AT_ONCE} calls at once are carried out. Call again.")
        results += [too_many] * (len(calls) - len(results))
        asking = [index for index, result in enumerate(results) if result.asks is not None]
        for index in asking[1:]:
            results[index] = ToolResult("Error: the user is asked one thing at a time. Call again after the answer.")
        return results

    def run(self, name: str, arguments: str, scope: Scope) -> ToolResult:
        """Run one call. Raises ToolFailed, or another AssistantError that prevents it."""
        if self.remote.has(name):
            return self.remote.run(name, object_in(arguments))
        kind, run = self._tools[name]
        with step("tool"):
            return run(read_arguments(kind, arguments), scope)

    def written_out(self, text: str) -> tuple[dict[str, Any], ...]:
        """Return the calls that make up a model's whole text, if each fits its tool's schema."""
        calls = calls_in_text(text)
        try:
            for call in calls:
                function = call["function"]
                if self.remote.has(function["name"]):
                    object_in(function["arguments"])
                elif function["name"] in self._tools:
                    read_arguments(self._tools[function["name"]][0], function["arguments"])
                else:
                    return ()
        except ToolFailed:
            return ()
        return calls

    def execute_pending(self, pending: dict[str, Any]) -> str:
        """Run a confirmed action, and return in sentences what was done and what wasn't."""
        if pending["tool"] not in self._tools:
            return self.remote.execute_pending(pending)
        deleted, failed, read_only, gone = [], [], [], 0
        for document_id in pending["arguments"]["document_ids"]:
            name = f"document {document_id}"
            try:
                name = self._documents.get(document_id).name
                self._remove(document_id)
                deleted.append(name)
            except DocumentNotFound:
                gone += 1
            except LibraryReadOnly:
                read_only.append(name)
            except Exception:
                # Deletions before an error are reported all the same.
                log.exception("Document %s could not be deleted", document_id)
                failed.append(name)
        done = [f"{_documents(len(deleted))} deleted: {_names(deleted)}." if deleted else "Nothing was deleted."]
        if failed:
            done.append(f"{_documents(len(failed))} could not be deleted: {_names(failed)}. The server's log says why.")
        if read_only:
            done.append(f"{_documents(len(read_only))} may only be read: {_names(read_only)}.")
        if gone:
            done.append(f"{_documents(gone)} not there any more.")
        return " ".join(done)

    def _run(self, call: dict[str, Any], scope: Scope, offered: Sequence[str]) -> ToolResult:
        function = call["function"]
        try:
            if function["name"] not in offered:
                raise ToolFailed(f'There is no tool "{function["name"]}". Available: {", ".join(offered)}.')
            return self.run(function["name"], function["arguments"], scope)
        except AssistantError as error:
            return ToolResult(f"Error: {error}")
        except Exception:
            log.exception("The tool %s failed", function["name"])
            return ToolResult("Error: the tool failed; the server's log says why.")

    def _search(self, arguments: SearchDocuments, scope: Scope) -> ToolResult:
        passages, support = self._retriever.find(arguments.query, arguments.limit, scope, for_model=True)
        weak = "These passages are only near: they may not answer the question." if support != "found" else ""
        return ToolResult(weak if passages else "Nothing was found. Try other words.", tuple(passages))

    def _read(self, arguments: ReadDocument, scope: Scope) -> ToolResult:
        document = self._document(arguments.document_id, scope)
        whole = self._documents.text(document.id)
        piece = whole.text[arguments.start : arguments.start + arguments.length]
        if not piece:
            size = len(whole.text)
            raise ToolFailed(f"Document {document.id} has {size} characters; there are none from {arguments.start} on.")
        page = sum(start <= arguments.start for start in whole.page_starts) or None
        end = arguments.start + len(piece)
        passage = Passage(0, document.id, document.name, arguments.start, end, piece, page, 1.0)
        return ToolResult(f"Characters {arguments.start} to {end} of {len(whole.text)}.", (passage,))

    def _list(self, arguments: ListDocuments, scope: Scope) -> ToolResult:
        documents, total = self._documents.find(arguments.name_contains, scope, MAX_LISTED)
        lines = [f"{document.id}: {document.name} ({document.state})" for document in documents]
        more = [f"and {total - len(documents)} more; ask for part of a name"] if total > len(documents) else []
        return ToolResult("\n".join([f"{_documents(total)}:", *lines, *more]) if lines else "There are no documents.")

    def _ask_to_delete(self, arguments: DeleteDocuments, scope: Scope) -> ToolResult:
        ids = list(dict.fromkeys(arguments.document_ids))
        names = [self._document(document_id, scope).name for document_id in ids]
        self._documents.refuse_read_only(ids)
        asks = f"Found {_documents(len(ids))}: {_names(names)}. Delete {'it' if len(ids) == 1 else 'them'}?"
        return ToolResult(
            f"Nothing is deleted yet. The user is asked: {asks}", asks=asks, arguments={"document_ids": ids}
        )

    def _propose_note(self, arguments: ProposeNote, _: Scope) -> ToolResult:
        return ToolResult("The user is asked to accept the note later. Go on with your answer.", note=arguments.text)

    def _document(self, document_id: int, scope: Scope) -> Document:
        document = self._documents.get(document_id)
        if not scope.holds(document.id, document.tags, document.library_id, document.date):
            raise DocumentNotFound(document_id)
        return document


def with_results(
    turn: Turn, text: str, calls: Sequence[dict[str, Any]], results: Sequence[ToolResult]
) -> tuple[Turn, list[Message]]:
    """Return a turn with what its tools found as sources, and the messages of the iteration; the model said ``text``.

    The passages are numbered after the turn's sources. A tool that needs confirmation makes the turn wait.
    """
    tool_calls = [well_formed(call) for call in calls]
    messages: list[Message] = [{"role": "assistant", "content": text or None, "tool_calls": tool_calls}]
    for call, result in zip(calls, results, strict=True):
        new = number_sources(result.passages, len(turn.sources) + 1)
        passages = PASSAGES.format(passages_text(new)) if new else ""
        text = "\n".join(part for part in (result.text, passages) if part)
        messages.append({"role": "tool", "content": text, "tool_call_id": call["id"]})
        turn = replace(turn, sources=turn.sources + new)
        if result.asks is not None:
            waiting = {"call_id": call["id"], "tool": call["function"]["name"], "arguments": result.arguments}
            turn = replace(turn, waiting=waiting)
    return turn, messages


def is_confirmation(text: str) -> bool | None:
    """Return whether a text is a plain yes or a plain no; ``None`` for everything else."""
    words = " ".join(WORDS.findall(text.lower().replace("\u2019", "'")))
    return True if words in YES else False if words in NO else None


def well_formed(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call that every server accepts: a legal name, and arguments that are one JSON object.

    What the model really wrote is in the result, which says what was wrong with it.
    """
    function = call["function"]
    try:
        is_object = isinstance(json.loads(function["arguments"]), dict)
    except (ValueError, RecursionError):
        is_object = False
    name = function["name"] if LEGAL_NAME.fullmatch(function["name"]) else "unknown_tool"
    whole = {"name": name, "arguments": function["arguments"] if is_object else "{}"}
    return {"id": call["id"], "type": "function", "function": whole}


def with_thoughts(message: Message, reply: ModelReply) -> Message:
    """Return a message of calls as its provider wants it back while tools run: only receipts keep the thoughts."""
    calls = [given | call for given, call in zip(reply.tool_calls, message["tool_calls"], strict=True)]
    return message | reply.thoughts | {"tool_calls": calls}


def _documents(count: int) -> str:
    return "1 document" if count == 1 else f"{count} documents"


def _names(names: Sequence[str]) -> str:
    """Return some names as a list in a sentence."""
    shown = ", ".join(map(quoted_name, names[:DOCUMENTS_NAMED]))
    return f"{shown} and {len(names) - DOCUMENTS_NAMED} more" if len(names) > DOCUMENTS_NAMED else shown
