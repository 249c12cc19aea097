"""Everything that is kept, over one database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rag_assistant.conversations.prompts import title_for
from rag_assistant.records.errors import SettingsError
from rag_assistant.retrieval.tokenize import words_of
from rag_assistant.services import Stores
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.libraries import LibraryStore
from rag_assistant.storage.conversations.answer_log import AnswerLog
from rag_assistant.storage.conversations.branching import BranchStore
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.etags import Etags
from rag_assistant.storage.conversations.exchange import ExchangeStore
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.links import ConversationLinkStore
from rag_assistant.storage.conversations.ratings import RatingStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.conversations.versions import VersionStore
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents.chunks import ChunkStore
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.scans import ScanStore


def open_database(values: Settings, data_dir: Path) -> Database:
    """Return the database, not connected yet. Raises SettingsError."""
    if values.database_url is None and values.role != "both":
        raise SettingsError(
            f'role is "{values.role}", which needs a database that other processes share: set database_url to one of '
            'PostgreSQL, or role to "both".'
        )
    return Database(values.database_url or sqlite_url(data_dir), values.database_connections)


def build_stores(database: Database, owner: str, tell: Callable[[set[int]], None], process: str = "") -> Stores:
    """Return the stores over a database. ``owner`` names where files are kept, ``process`` this process.

    A process has its name when it is entered among those that live; the stores that work on something get it then.
    ``tell`` is told of which turns there is more.
    """
    return Stores(
        database=database,
        conversations=ConversationManager(database, process),
        turns=TurnStore(database, process, words_of),
        versions=VersionStore(database, words_of),
        eraser=TurnEraser(database, title_for),
        ratings=RatingStore(database),
        branches=BranchStore(database),
        exchange=ExchangeStore(database, owner, words_of),
        etags=Etags(database),
        history=HistoryStore(database),
        answers=AnswerLog(database, process, tell),
        documents=DocumentStore(database, owner, process),
        libraries=LibraryStore(database),
        links=ConversationLinkStore(database),
        chunks=ChunkStore(database),
        embeddings=EmbeddingStore(database),
        scans=ScanStore(database),
    )
