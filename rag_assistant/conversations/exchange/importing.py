"""Import exported conversations: existing ones are skipped, ids become those of this database."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.conversations.exchange.products import Export
from rag_assistant.conversations.retention import used_since
from rag_assistant.records import NO_DOCUMENT, Source
from rag_assistant.records.archive import WholeAnswer, WholeConversation, WholeTurn
from rag_assistant.storage.conversations.exchange import ExchangeStore
from rag_assistant.storage.conversations.notes import NoteStore
from rag_assistant.storage.documents.documents import DocumentStore


class Outcome(Struct, frozen=True):
    """The result for a conversation: ``conversation_id`` here, ``new`` or existing."""

    conversation_id: int
    title: str
    turns: int
    new: bool


def import_conversations(
    export: Export, store: ExchangeStore, documents: DocumentStore, notes: NoteStore, retention_days: int | None
) -> tuple[list[Outcome], int]:
    """Import new conversations, each completely or not at all; return the result for each, and how many notes came.

    One older than ``retention_days`` counts as used now, so that it isn't moved to the trash at once. Raises
    InvalidRequest for one that can't be stored; those before it stay, and are skipped the next time. Only one import
    may run at a time (files.py).
    """
    since = used_since(retention_days)
    ids_here = store.imported_ids()
    with_content = documents.ids_by_sha256()
    document_ids = {one.id: with_content[one.sha256] for one in export.documents if one.sha256 in with_content}
    ids: dict[int, int] = {}
    outcomes = []
    for one in export.conversations:
        new = one.identity not in ids_here
        if new:
            if since is not None and one.updated_at < since:
                one = replace(one, updated_at=datetime.now(UTC))
            ids_here[one.identity] = store.insert(localised(one, ids, document_ids))
        ids[one.id] = ids_here[one.identity]
        outcomes.append(Outcome(ids[one.id], one.title, len(one.turns), new))
    note_count = notes.restore(
        [replace(one, turn=(ids.get(one.turn[0], 0), one.turn[1])) if one.turn else one for one in export.notes]
    )
    return outcomes, note_count


def localised(whole: WholeConversation, ids: Mapping[int, int], document_ids: Mapping[int, int]) -> WholeConversation:
    """Return a conversation with the ids of this database; it is no branch if its origin isn't included."""
    origin = whole.branched_from
    return replace(
        whole,
        branched_from=(ids[origin[0]], origin[1]) if origin and origin[0] in ids else None,
        # Its libraries aren't here.
        scope=replace(
            whole.scope,
            document_ids=_named(whole.scope.document_ids, document_ids),
            library_ids=_named(whole.scope.library_ids, {}),
        ),
        turns=tuple(_turn(one, document_ids) for one in whole.turns),
    )


def _turn(turn: WholeTurn, document_ids: Mapping[int, int]) -> WholeTurn:
    request = dict(turn.request)
    for name, here in (("document_ids", document_ids), ("library_ids", {})):
        if name in request:
            request[name] = list(_named(request[name], here))
    others = {version: _answer(one, document_ids) for version, one in turn.others.items()}
    return replace(turn, request=request, answer=_answer(turn.answer, document_ids), others=others)


def _answer(answer: WholeAnswer, document_ids: Mapping[int, int]) -> WholeAnswer:
    return replace(answer, sources=tuple(_source(one, document_ids) for one in answer.sources))


def _source(source: Source, document_ids: Mapping[int, int]) -> Source:
    if source.turn is not None:  # That id is another conversation here, and its erasure wouldn't find the copy.
        return replace(source, conversation_id=None, text="")
    return replace(source, document_id=document_ids.get(source.document_id, NO_DOCUMENT))


def _named(named: Iterable[int], document_ids: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(document_ids.get(one, NO_DOCUMENT) for one in named))
