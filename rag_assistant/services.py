"""What a way in (the pages, the API, the command line) may use: the connected rooms, started and ended together."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rag_assistant.records.errors import AssistantError, DocumentNotFound, EmbedderFailed
from rag_assistant.runtime.data_dir import join_commands, lock_data_dir
from rag_assistant.storage.migrate import migrate
from rag_assistant.storage.pooler import refuse_forgetful_pooler

if TYPE_CHECKING:
    # Loading numpy and with it the search takes a while; the command line does not always need it.
    from rag_assistant.accounts.accounts import Accounts, Actor
    from rag_assistant.accounts.limits import PersonalLimits
    from rag_assistant.accounts.setup import Setup
    from rag_assistant.accounts.single_sign_on import SingleSignOn
    from rag_assistant.answering.assistant import Assistant
    from rag_assistant.answering.evaluation import Evaluation
    from rag_assistant.answering.tools import Tools
    from rag_assistant.conversations.actions import HistoryActions
    from rag_assistant.conversations.corrections import Corrections
    from rag_assistant.conversations.exchange.importing import ConversationImport
    from rag_assistant.documents.doctor import Doctor
    from rag_assistant.documents.library import Library
    from rag_assistant.documents.page_images import PagePictures
    from rag_assistant.documents.sources.watch import Sources
    from rag_assistant.documents.unfamiliar import UnfamiliarDocuments
    from rag_assistant.documents.uploads import Uploads
    from rag_assistant.documents.web_pages import WebPages
    from rag_assistant.factory.membership import Membership
    from rag_assistant.files.store import FileStore
    from rag_assistant.llm.connection_check import ConnectionCheck
    from rag_assistant.llm.local_servers import LocalServers
    from rag_assistant.llm.models import LanguageModels
    from rag_assistant.records import Person
    from rag_assistant.retrieval.embeddings.registry import Embedders
    from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
    from rag_assistant.retrieval.indexes.vector_search import VectorSearch
    from rag_assistant.retrieval.search import Retriever
    from rag_assistant.runtime.probe import Probe
    from rag_assistant.runtime.telemetry.metrics import Observer
    from rag_assistant.settings.live import LiveSettings
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
    from rag_assistant.storage.database import Database
    from rag_assistant.storage.documents.chunks import ChunkStore
    from rag_assistant.storage.documents.documents import DocumentStore
    from rag_assistant.storage.documents.embeddings import EmbeddingStore
    from rag_assistant.storage.documents.scans import ScanStore
    from rag_assistant.storage.leases import ProcessKind

log = logging.getLogger(__name__)

CONTAINER_SIGNS = (Path("/.dockerenv"), Path("/run/.containerenv"))


KINDS: dict[str, ProcessKind] = {"both": "server", "web": "web", "worker": "worker"}
# An end waits so long for what is still being loaded, which an embedding endpoint may hold up.
WARM_UP_SECONDS = 3.0


def in_container(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this process runs in a container: Docker, Podman and systemd-nspawn say so."""
    return bool(environment.get("container")) or any(sign.exists() for sign in CONTAINER_SIGNS)


@dataclass(kw_only=True)
class Stores:
    """Everything that is kept, over one database."""

    database: Database
    conversations: ConversationManager
    turns: TurnStore
    versions: VersionStore
    eraser: TurnEraser
    ratings: RatingStore
    branches: BranchStore
    exchange: ExchangeStore
    etags: Etags
    history: HistoryStore
    answers: AnswerLog
    documents: DocumentStore
    libraries: LibraryStore
    links: ConversationLinkStore
    chunks: ChunkStore
    embeddings: EmbeddingStore
    scans: ScanStore


@dataclass(kw_only=True)
class Services(Stores):
    """Everything that a way in (the pages, the API, the command line) may use: what is kept, and who works with it."""

    settings: LiveSettings
    conversation_import: ConversationImport
    library: Library
    uploads: Uploads
    embedders: Embedders
    vectors: VectorSearch
    keywords: KeywordSearch
    retriever: Retriever
    models: LanguageModels
    local_servers: LocalServers
    tools: Tools
    assistant: Assistant
    evaluation: Evaluation
    history_actions: HistoryActions
    corrections: Corrections
    web_pages: WebPages
    sources: Sources
    page_images: PagePictures
    unfamiliar: UnfamiliarDocuments
    # What one person may take; none where nobody is signed in.
    limits: PersonalLimits | None = None
    data_dir: Path
    guide: Path
    probe: Probe
    files_probe: Probe
    # Opens another store than the one in use, at an s3:// address or in a folder.
    open_files: Callable[[str], FileStore]
    membership: Membership
    accounts: Accounts
    setup: Setup
    single_sign_on: SingleSignOn
    # What belongs to one person, by the person's id, and whether they may change documents in this request.
    of_person: Callable[[int, bool], Services] = field(init=False, repr=False)
    observer: Observer
    _lock_file: IO[str] | None = None
    _start_lock: threading.Lock = field(default_factory=threading.Lock)
    _started: bool = False
    _warming: threading.Thread | None = None
    # This process was told to end: others are to be asked.
    is_ending: bool = False

    def prepare(self) -> None:
        """Bring the database to the present schema; put the guide into a library that is new."""
        refuse_forgetful_pooler(self.database)
        if migrate(self.database):
            for path in sorted(self.guide.glob("*.md")):
                with path.open("rb") as file:
                    self.library.accept(file, path.name)

    def start_command(self, *, answers: bool) -> None:
        """Prepare a command, whose requests start nothing more."""
        if answers:
            self.prepare_to_answer()
        else:
            self.prepare()
        self._started = True

    def prepare_to_answer(self) -> None:
        """Prepare a command that answers questions: a server that starts meanwhile leaves its answers alone."""
        self.prepare()
        self._lock_file, alone = join_commands(self.data_dir)
        if alone:
            self.membership.forget_commands()
        self.membership.enter("command")
        self.assistant.recover()
        self.tools.remote.start()
        self.load_embedder()
        self.keywords.load()

    def start(self) -> None:
        """Begin to serve, once: take up what a crash left, and load behind the first page what takes long."""
        with self._start_lock:
            if self._started:
                return
            self._lock_file = lock_data_dir(self.data_dir)
            try:
                self.prepare()
                self.setup.prepare(self.settings.current, in_container())
                self._forget_dead_commands()
                self.membership.enter_server(KINDS[self.role])
                self.assistant.recover()
            except BaseException:
                self._lock_file.close()
                raise
            if self.role != "web":
                self.library.start()
                self.sources.start()
            self.settings.watch()
            if self.role != "worker":
                self.models.start()
                self.tools.remote.start()
            self._warming = threading.Thread(target=self._warm_up, name="warm-up", daemon=True)
            self._warming.start()
            self._started = True

    def start_library(self) -> None:
        """Begin to process documents for a command that has locked the data folder."""
        self.membership.enter_server("server")
        self.library.start()

    @property
    def role(self) -> str:
        """What this process does: ``both``, or as a ``web`` or a ``worker`` a part of it."""
        return self.settings.current.role

    def _forget_dead_commands(self) -> None:
        lock_file, alone = join_commands(self.data_dir)
        with lock_file:
            if alone:
                self.membership.forget_commands()

    def delete_account(self, person: Person, actor: Actor, give_to: Person | None) -> None:
        """Delete an account; what is theirs goes to somebody else, or is erased for good. Raises LastAdmin."""

        def erase(conversation_ids: Sequence[int], document_ids: Sequence[int]) -> None:
            for conversation_id in conversation_ids:
                self.conversations.purge(conversation_id)
            for document_id in document_ids:
                with suppress(DocumentNotFound):  # It went with the one whose newer version it was.
                    self.library.remove(document_id)

        self.accounts.delete(person, actor, give_to, erase)

    def doctor(self) -> Doctor:
        """Return who compares what belongs together."""
        from rag_assistant.documents.doctor import Doctor
        from rag_assistant.storage.documents.checks import LibraryChecks

        if not self.database.is_sqlite:
            self.load_embedder()
            self.vectors.now()  # Whether pgvector is there.
        stores = self.documents, self.chunks, self.embeddings
        return Doctor(LibraryChecks(self.database), *stores, self.uploads, self.library)

    def check_connection(self) -> ConnectionCheck:
        """Return whether the endpoints of the settings answer. Raises NoEndpoint where there is nothing to ask."""
        from rag_assistant.llm.connection_check import check_connection

        def embed(text: str) -> Sized:
            vector: Sized = self.embedders.configured().embedder.embed([text])[0]
            return vector

        builtin = self.settings.current.embedder.startswith("builtin")
        return check_connection(self.models, None if builtin else embed, self.retriever.reranking.model)

    def close(self) -> None:
        """Stop everything that was started."""
        if self._warming is not None:
            self._warming.join(WARM_UP_SECONDS)
        self.assistant.close()
        self.tools.remote.close()
        self.sources.close()
        self.library.close()
        self.settings.close()
        self.models.close()
        self.vectors.close()
        self.keywords.close()
        self.embedders.close()
        self.membership.leave()
        self.database.close()
        self.observer.close()
        if self._lock_file is not None:
            self._lock_file.close()

    def _warm_up(self) -> None:
        """Load what the first question would otherwise wait for."""
        try:
            self.files_probe.state()  # The log says what is wrong.
            self.load_embedder()
            if self.role == "worker":
                return
            if self.models.connected:
                self.models.client.warm_up()
            self.vectors.follow()
            self.vectors.warm_up()
            self.keywords.warm_up()
        except AssistantError as error:  # The server ends already, or the first question will tell.
            log.info("What is not loaded yet is loaded by the first question: %s", error)

    def load_embedder(self) -> None:
        """Load the embedding model. Without it search goes on by keywords, and /readyz says so."""
        try:
            self.embedders.configured()
        except EmbedderFailed as error:
            log.error("The embedding model cannot be used: %s", error)
