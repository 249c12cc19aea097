"""The only place that chooses implementations and connects them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from flask import Flask

from rag_assistant.assistant import Assistant
from rag_assistant.data_dir import installation_id, lock_data_dir
from rag_assistant.errors import EmbedderFailed
from rag_assistant.history_actions import HistoryActions
from rag_assistant.llm.builtin import BuiltinModel
from rag_assistant.llm.client import OPENAI_BASE_URL
from rag_assistant.llm.models import LanguageModels
from rag_assistant.settings import Settings
from rag_assistant.settings_file import LiveSettings, open_settings
from rag_assistant.storage.answers import AnswerLog
from rag_assistant.storage.branching import BranchStore
from rag_assistant.storage.checks import LibraryChecks
from rag_assistant.storage.chunks import ChunkStore
from rag_assistant.storage.conversations import ConversationManager
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents import DocumentStore
from rag_assistant.storage.embeddings import EmbeddingStore
from rag_assistant.storage.history import HistoryStore
from rag_assistant.storage.keywords import KeywordIndex
from rag_assistant.storage.migrate import migrate
from rag_assistant.storage.state_tags import StateTags
from rag_assistant.storage.turns import TurnStore
from rag_assistant.storage.versions import VersionStore
from rag_assistant.tools import Tools
from rag_assistant.uploads import Uploads

if TYPE_CHECKING:
    from rag_assistant.doctor import Doctor

log = logging.getLogger(__name__)

PROJECT = Path(__file__).resolve().parents[1]
GUIDE = PROJECT / "docs" / "guide"


@dataclass
class Services:
    """Everything that a way in (the pages, the API, the command line) may use."""

    settings: LiveSettings
    database: Database
    conversations: ConversationManager
    turns: TurnStore
    versions: VersionStore
    branches: BranchStore
    state_tags: StateTags
    history: HistoryStore
    documents: DocumentStore
    library: Any
    chunks: ChunkStore
    embeddings: EmbeddingStore
    uploads: Uploads
    embedders: Any
    vectors: Any
    retriever: Any
    models: LanguageModels
    assistant: Assistant
    history_actions: HistoryActions
    pictures: Any
    data_dir: Path
    _lock_file: IO[str] | None = None
    _start_lock: threading.Lock = field(default_factory=threading.Lock)
    _started: bool = False

    def prepare(self) -> None:
        """Bring the database to the present schema; put the guide into a library that is new."""
        if migrate(self.database):
            for path in sorted(GUIDE.glob("*.md")):
                with path.open("rb") as file:
                    self.library.accept(file, path.name)

    def start(self) -> None:
        """Begin to serve, once: take up what a crash left, and load behind the first page what takes long."""
        with self._start_lock:
            if self._started:
                return
            self._lock_file = lock_data_dir(self.data_dir)
            try:
                self.prepare()
                self.assistant.recover()
            except BaseException:
                self._lock_file.close()
                raise
            self.library.start()
            self.settings.watch()
            if self.models.uses_built_in():
                self.models.built_in.child.start()
            threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
            self._started = True

    def doctor(self, with_chroma: bool) -> Doctor:
        """Return who compares what belongs together; ``with_chroma`` only where no other process of ours runs it."""
        from rag_assistant.doctor import Doctor

        checks = LibraryChecks(self.database)
        index = self._chroma_in_use() if with_chroma else None
        stores = self.documents, self.chunks, self.embeddings
        return Doctor(checks, *stores, self.uploads, self.library, index)

    def _chroma_in_use(self) -> Any:
        """Return Chroma's index if the library is large enough to use it."""
        self.load_embedder()
        active = self.embeddings.active()
        self.vectors.now()
        large = active is not None and active.version[0] - active.version[1] >= self.settings.current.chroma_from_chunks
        return self.vectors.chroma if large else None

    def close(self) -> None:
        """Stop everything that was started."""
        self.assistant.close()
        self.library.close()
        self.settings.close()
        self.models.built_in.child.close()
        self.vectors.close()
        self.embedders.close()
        self.database.close()
        if self._lock_file is not None:
            self._lock_file.close()

    def _warm_up(self) -> None:
        """Load what the first question would otherwise wait for."""
        self.models.client.warm_up()
        self.load_embedder()

    def load_embedder(self) -> None:
        """Load the embedding model. Without it search goes on by keywords, and /readyz says so."""
        try:
            self.embedders.wanted()
        except EmbedderFailed as error:
            log.error("The embedding model cannot be used: %s", error)


def build_services(settings: LiveSettings) -> Services:
    """Return the services, connected but not started: nothing runs and nothing is read yet."""
    # Loading numpy and with it the search takes a while; the command line does not always need it.
    from rag_assistant.background import Lane
    from rag_assistant.library import Library
    from rag_assistant.page_pictures import PagePictures
    from rag_assistant.retrieval.chroma import ChromaIndex
    from rag_assistant.retrieval.embedders import Embedders
    from rag_assistant.retrieval.search import Retriever
    from rag_assistant.retrieval.vectors import VectorSearch
    from rag_assistant.retrieval.words import search_words

    values = settings.current
    data_dir = PROJECT / values.data_dir
    data_dir.mkdir(parents=True, exist_ok=True)
    database = Database(values.database_url or sqlite_url(data_dir))
    conversations = ConversationManager(database)
    owner = installation_id(data_dir)

    def words_of(text: str) -> str:
        return " ".join(search_words(text))

    turns = TurnStore(database, owner, words_of)
    history = HistoryStore(database)
    documents = DocumentStore(database, owner)
    chunks = ChunkStore(database)
    embeddings = EmbeddingStore(database)
    embedders = Embedders(embeddings, embedder_source(values), lambda source: open_embedder(source, values))
    vectors = VectorSearch(
        embeddings,
        embedders,
        lambda key: ChromaIndex(embeddings, key, values.chroma_url, data_dir / "chroma"),
        values.chroma_from_chunks,
    )
    retriever = Retriever(chunks, KeywordIndex(database), vectors)
    models = LanguageModels(lambda: settings.current, BuiltinModel())
    uploads = Uploads(data_dir / "uploads")
    queues = data_dir / "queue.db" if database.is_sqlite else database.connection_string
    library = Library(
        documents,
        chunks,
        embeddings,
        embedders,
        uploads,
        lambda lane: Lane(f"{owner}-{lane}", queues),
        lambda: settings.current,
    )
    tools = Tools(documents, retriever, library.remove)
    return Services(
        settings=settings,
        database=database,
        conversations=conversations,
        turns=turns,
        versions=VersionStore(database, words_of),
        branches=BranchStore(database),
        state_tags=StateTags(database),
        history=history,
        documents=documents,
        library=library,
        chunks=chunks,
        embeddings=embeddings,
        uploads=uploads,
        embedders=embedders,
        vectors=vectors,
        retriever=retriever,
        models=models,
        assistant=Assistant(
            conversations=conversations,
            turns=turns,
            answers=AnswerLog(database),
            history=history,
            documents=documents,
            retriever=retriever,
            tools=tools,
            models=models,
            settings=lambda: settings.current,
            most_running=values.max_running_answers,
        ),
        history_actions=HistoryActions(conversations, history, models, tools.schemas, lambda: settings.current),
        pictures=PagePictures(documents, library, lambda: settings.current),
        data_dir=data_dir,
    )


def embedder_source(values: Settings) -> dict[str, Any]:
    """Return the settings that lead to the embedding model, without what may hold a key."""
    source: dict[str, Any] = {"embedder": values.embedder}
    if values.embedder.startswith("endpoint:"):
        base_url = values.embedding_base_url or values.openai_base_url or OPENAI_BASE_URL
        source["base_url"] = base_url.rstrip("/")
    return source


def open_embedder(source: dict[str, Any], values: Settings) -> Any:
    """Return the embedding model to which a source leads, not loaded yet."""
    from rag_assistant.llm.embeddings import EndpointEmbedder
    from rag_assistant.retrieval.chroma_embedders import ChromaEmbedder
    from rag_assistant.retrieval.embedding import MiniLM

    kind, _, name = source["embedder"].partition(":")
    if kind == "builtin":
        return MiniLM(threads=max(1, (os.cpu_count() or 1) // 2))
    if kind == "endpoint":
        # The key of one endpoint is never sent to another.
        own = source["base_url"] == embedder_source(values).get("base_url")
        shared = values.openai_api_key if values.embedding_base_url is None else None
        key = (values.embedding_api_key or shared) if own else None
        return EndpointEmbedder(source["base_url"], key, name, values.connect_timeout_seconds)
    own_options = values.embedder_options if source["embedder"] == values.embedder else None
    return ChromaEmbedder(name, own_options or {})


def create_app(environment: Mapping[str, str] | None = None) -> Flask:
    """Return the application. Its services start with the first request, or when ``app.services.start()`` is called.

    Raises SettingsError if a setting is wrong.
    """
    from rag_assistant import cli, web

    settings = open_settings(environment)
    app = Flask("rag_assistant", root_path=str(PROJECT))
    services = build_services(settings)
    app.extensions["assistant"] = services
    web.init_app(app, services)
    cli.init_app(app, services)
    return app
