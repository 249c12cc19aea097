"""The only place that chooses implementations and connects them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from flask import Flask

from rag_assistant.assistant import Assistant
from rag_assistant.data_dir import installation_id, lock_data_dir
from rag_assistant.history_actions import HistoryActions
from rag_assistant.library import Library
from rag_assistant.llm.builtin import BuiltinModel
from rag_assistant.llm.models import LanguageModels
from rag_assistant.settings_file import LiveSettings, open_settings
from rag_assistant.storage.answers import AnswerLog
from rag_assistant.storage.conversations import ConversationManager
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents import DocumentStore
from rag_assistant.storage.history import HistoryStore
from rag_assistant.storage.keywords import KeywordIndex
from rag_assistant.storage.migrate import migrate
from rag_assistant.storage.turns import TurnStore
from rag_assistant.tools import Tools

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
    history: HistoryStore
    documents: DocumentStore
    library: Library
    retriever: Any
    chroma: Any
    embedder: Any
    models: LanguageModels
    assistant: Assistant
    history_actions: HistoryActions
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

    def close(self) -> None:
        """Stop everything that was started."""
        self.assistant.close()
        self.library.close()
        self.settings.close()
        self.models.built_in.child.close()
        self.chroma.close()
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
            self.embedder.load()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it
            log.error("The embedding model cannot be used: %s", error)


def build_services(settings: LiveSettings) -> Services:
    """Return the services, connected but not started: nothing runs and nothing is read yet."""
    # Loading numpy and with it the search takes a while; the command line does not always need it.
    from rag_assistant.retrieval.chroma import ChromaIndex
    from rag_assistant.retrieval.embedding import MiniLM
    from rag_assistant.retrieval.exact import ExactIndex
    from rag_assistant.retrieval.search import Retriever
    from rag_assistant.retrieval.vectors import VectorSearch
    from rag_assistant.retrieval.words import search_words

    values = settings.current
    data_dir = PROJECT / values.data_dir
    data_dir.mkdir(parents=True, exist_ok=True)
    database = Database(values.database_url or sqlite_url(data_dir))
    conversations = ConversationManager(database)
    owner = installation_id(data_dir)
    turns = TurnStore(database, owner, lambda text: " ".join(search_words(text)))
    history = HistoryStore(database)
    documents = DocumentStore(database, owner)
    embedder = MiniLM(threads=max(1, (os.cpu_count() or 1) // 2))
    chroma = ChromaIndex(documents, embedder.name, values.chroma_url, data_dir / "chroma")
    exact = ExactIndex(documents, embedder.name, embedder.dimension)
    vectors = VectorSearch(documents, exact, chroma, values.chroma_from_chunks)
    retriever = Retriever(documents, KeywordIndex(database), embedder, vectors)
    models = LanguageModels(lambda: settings.current, BuiltinModel())
    library = Library(documents, embedder, data_dir / "uploads", lambda: settings.current)
    tools = Tools(documents, retriever, library.remove)
    return Services(
        settings=settings,
        database=database,
        conversations=conversations,
        turns=turns,
        history=history,
        documents=documents,
        library=library,
        retriever=retriever,
        chroma=chroma,
        embedder=embedder,
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
        data_dir=data_dir,
    )


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
