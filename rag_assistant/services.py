"""What entry points use: all parts, connected, started and stopped together. Only this and ``factory/`` choose them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cache, lru_cache, partial
from typing import IO

from msgspec import structs

from rag_assistant.accounts.accounts import Accounts, Actor, Setup
from rag_assistant.accounts.limits import ModelLimits, PersonalLimits
from rag_assistant.answering.assistant import Assistant
from rag_assistant.answering.grids import GridRunner
from rag_assistant.answering.live import LiveTurns
from rag_assistant.answering.task import Dependencies
from rag_assistant.answering.tools import Tools
from rag_assistant.answering.writer import AnswerWriter, StatelessWriter
from rag_assistant.conversations.actions import HistoryActions
from rag_assistant.conversations.corrections import Corrections
from rag_assistant.conversations.retention import Retention
from rag_assistant.documents.doctor import Doctor
from rag_assistant.documents.library import Library
from rag_assistant.documents.page_images import PagePictures
from rag_assistant.documents.processing import DocumentProcessing
from rag_assistant.documents.report import LibraryReports, ReadText
from rag_assistant.documents.sources.watch import Sources
from rag_assistant.documents.uploads import Uploads
from rag_assistant.documents.web_pages import WebPages
from rag_assistant.factory import engines
from rag_assistant.factory.membership import Membership, Upkeep
from rag_assistant.factory.stores import Stores
from rag_assistant.files import FileStore
from rag_assistant.llm.calibration import Calibration
from rag_assistant.llm.connection_check import ConnectionCheck, check_connection
from rag_assistant.llm.local_model import LocalModel
from rag_assistant.llm.local_servers import LocalServers
from rag_assistant.llm.models import LanguageModels
from rag_assistant.records import Person
from rag_assistant.records.errors import AssistantError, DocumentNotFound, EmbedderFailed
from rag_assistant.retrieval.embeddings.registry import Embedders
from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
from rag_assistant.retrieval.indexes.vector_search import VectorSearch
from rag_assistant.retrieval.postprocess import Reranking
from rag_assistant.retrieval.search import Retriever
from rag_assistant.retrieval.terms import turn_terms
from rag_assistant.runtime.background import Probe
from rag_assistant.runtime.data_dir import (
    Disk,
    drop_leftovers,
    installation_id,
    join_commands,
    lock_data_dir,
    open_data_dir,
)
from rag_assistant.runtime.public_http import PublicHttp
from rag_assistant.runtime.telemetry.metrics import Metrics
from rag_assistant.settings.live import LiveSettings, open_settings, provide_settings_file
from rag_assistant.settings.package_files import GUIDE, OF_GUIDE, home
from rag_assistant.settings.schema import Settings, shared_settings
from rag_assistant.storage.accounts.credentials import CredentialStore
from rag_assistant.storage.accounts.people import AuditLog, PeopleStore
from rag_assistant.storage.accounts.usage import ModelCountsStore, UsageStore
from rag_assistant.storage.backup import Kept
from rag_assistant.storage.conversations.projects import ProjectStore
from rag_assistant.storage.conversations.receipts import CorrectionStore
from rag_assistant.storage.conversations.turn_endings import AnswerLog
from rag_assistant.storage.conversations.versions import AnsweredQuestions
from rag_assistant.storage.documents.checks import LibraryChecks
from rag_assistant.storage.documents.chunks import KeywordIndex
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.sources import SourceStore
from rag_assistant.storage.grids import CellQueue, GridStore
from rag_assistant.storage.migrate import migrate, refuse_forgetful_pooler
from rag_assistant.storage.processes import Leases, PageSettings, ProcessKind, Signals
from rag_assistant.storage.scheduled_backups import ScheduledBackups
from rag_assistant.storage.usage import database_probe, write_probe

log = logging.getLogger(__name__)

KINDS: dict[str, ProcessKind] = {"both": "server", "web": "web", "worker": "worker"}
# How long a shutdown waits for what is loading, which an embedding endpoint may delay.
WARM_UP_SECONDS = 3.0
# How many people's services are kept for their next request.
PEOPLE_AT_ONCE = 256
# How old the state of the uploaded files may be that health checks are told.
FILES_SECONDS = 10.0


def open_services(environment: Mapping[str, str] | None = None) -> Services:
    """Return the services for the settings. Raises SettingsError if a setting is invalid."""
    provide_settings_file(environment)
    return Services(open_settings(environment))


class Services(Stores):
    """All that an entry point may use, over its stores: connected but not started, so that nothing runs or is read."""

    def __init__(self, settings: LiveSettings) -> None:
        values = settings.current
        self.settings = settings
        self.guide = GUIDE
        self.data_dir = open_data_dir(home() / values.data_dir)
        self.disk = Disk(self.data_dir)
        self.process = ""
        database = engines.open_database(values, self.data_dir)
        leases = Leases(database, installation_id(self.data_dir), lambda: shared_settings(settings.current))
        if not database.is_sqlite:
            settings.share(PageSettings(database))
        self._signals = Signals(database, lambda: leases.has_others)
        self.uploads = Uploads(self.open_files(values.files_url or str(self.data_dir / "uploads")))
        self.open_stores(database, self.uploads.store.owner)
        self.answers = AnswerLog(database, "", self._signals.tell_text)
        self.backups = ScheduledBackups(
            self.backup_content,
            lambda: settings.current,
            lambda where: engines.open_bucket(where, "backup_folder", settings.current, self.data_dir),
        )
        self.embeddings = EmbeddingStore(database)
        self.embedders = Embedders(
            self.embeddings,
            engines.embedder_source(values),
            lambda source: engines.open_embedder(source, values, self.data_dir),
        )
        open_index = partial(engines.open_index, values, self.data_dir, database, self.embeddings)
        self.vectors = VectorSearch(self.embeddings, self.embedders, open_index)
        self.keywords = KeywordSearch(KeywordIndex(database))
        self.reranking = Reranking(engines.open_reranker(values))
        local = LocalModel(values.local_model, values.model_context_tokens) if values.local_model else None
        self.usage = UsageStore(database)
        self.metrics = Metrics()
        self.model_limits = limits = ModelLimits(lambda: settings.current, self.usage, self.metrics)
        counts = ModelCountsStore(database)
        calibration = Calibration(counts.get, counts.keep)
        self.models = LanguageModels(lambda: settings.current, limits.refuse_beyond, limits.count, local, calibration)
        self.limits: PersonalLimits | None = None  # One person's; none without sign-in.
        self.local_servers = LocalServers(values.port)
        self.remote_tools = engines.build_remote_tools(values)
        self.processing = DocumentProcessing(
            self.documents,
            self.chunks,
            self.embeddings,
            self.embedders,
            self.uploads,
            lambda: settings.current,
            self.scans,
            None if database.is_sqlite else self._signals.tell_work,
        )
        self.library = Library(self.documents, self.uploads, self.processing, lambda: settings.current)
        self.retention = Retention(self.conversations, ProjectStore(database), self.eraser, lambda: settings.current)
        self.upkeep = Upkeep(self.disk, self.backups, leases, self.retention if values.role != "web" else None)
        self.web_pages = WebPages(PublicHttp(), lambda: settings.current)
        self.page_images = PagePictures(self.uploads, self.scans, lambda: settings.current)
        sources = engines.open_sources(values, self.data_dir)
        interval = values.sources_interval_seconds
        self.sources = Sources(
            sources, self.library, SourceStore(database), interval, lambda: settings.current.maintenance
        )
        self._writer = AnswerWriter(self.turns, self.answers)
        self._stateless = StatelessWriter(self.turns, self.answers)
        self._texts_read: dict[int, ReadText] = {}  # Shared by everybody's reports.
        deps = self._connect()
        self._live_turns = LiveTurns(values.max_running_answers)
        self.assistant = Assistant(self._live_turns, deps, self._signals)
        self.accounts = Accounts(PeopleStore(database), CredentialStore(database), AuditLog(database))
        self.setup = Setup(self.accounts)
        self.single_sign_on = engines.build_single_sign_on(values, database, self.accounts)
        self.membership = Membership(
            leases, self._signals, self.assistant, self.processing, self.take_name, beats=not database.is_sqlite
        )
        self.probe = database_probe(database)
        self.write_probe = write_probe(database, lambda: self.process)
        self.files_probe = Probe("files", self.uploads.store.check, silent="unreachable", max_age_seconds=FILES_SECONDS)
        self._people = lru_cache(PEOPLE_AT_ONCE)(self._services_of)
        self._limits_of = cache(  # Forgetting a running person's limits would lift them for a while.
            lambda person_id: PersonalLimits(limits, person_id, lambda: self.process)
        )
        cells, tables, models = CellQueue(database), GridStore(database), self.models
        self.grid_runner = GridRunner(
            cells, tables, self._assistant_of, models, lambda: self.process, lambda: settings.current
        )
        self._lock_file: IO[str] | None = None
        self._start_lock = threading.Lock()
        self._started = False
        self._warming: threading.Thread | None = None
        self.is_ending = False  # Whether it is shutting down, and requests should go elsewhere.

    def _connect(self) -> Dependencies:
        """Connect the services to the stores; return what an answer needs."""
        settings = self.settings
        self.retriever = Retriever(self.chunks, self.keywords, self.vectors, self.reranking)
        self.tools = tools = Tools(self.documents, self.retriever, self.library.trash, self.remote_tools)
        self.history_actions = HistoryActions(
            self.conversations, self.history, self.models, lambda: tools.schemas, lambda: settings.current, self.notes
        )
        self.corrections = Corrections(CorrectionStore(self.database), self.history, self.retriever)
        questions = AnsweredQuestions(self.database)
        self.reports = LibraryReports(questions, self.documents, self.chunks, self.retriever, self._texts_read)
        return Dependencies(
            conversations=self.conversations,
            turns=self.turns,
            history=self.history,
            notes=self.notes,
            retriever=self.retriever,
            documents=self.documents,
            draw_page=self.page_images.whole_page,
            tools=tools,
            models=self.models,
            writer=self._writer,
            stateless=self._stateless,
            metrics=self.metrics,
            settings=lambda: settings.current,
        )

    def for_person(self, person_id: int, *, changes_documents: bool) -> Services:
        """Return one person's services, which share what runs; without ``changes_documents`` no document changes."""
        # After losing its lease this process has another name, and the old one must not be used.
        return self._people(person_id, changes_documents, self.process)

    def _assistant_of(self, person_id: int | None) -> Assistant:
        return self.assistant if person_id is None else self.for_person(person_id, changes_documents=False).assistant

    def _services_of(self, person_id: int, changes_documents: bool, _process: str) -> Services:
        own, limits = copy(self), self._limits_of(person_id)
        database = self.database.for_person(person_id, changes_documents=changes_documents)
        own.open_stores(database, self.uploads.store.owner)
        own.limits, own.model_limits = limits, limits.of_models
        own.models = self.models.for_person(limits.of_models.refuse_beyond, limits.of_models.count)
        own.library = structs.replace(self.library, documents=own.documents, max_bytes=limits.max_bytes)
        own.assistant = Assistant(self._live_turns, own._connect(), self._signals, limits)
        return own

    def open_files(self, where: str) -> FileStore:
        """Return another file store, at an ``s3://`` address or in a folder. Raises SettingsError."""
        return engines.open_files(where, self.settings.current, self.data_dir)

    def prepare(self) -> None:
        """Upgrade the database schema; add the guide to a new library. What was killed meanwhile leaves nothing."""
        drop_leftovers(self.data_dir)
        refuse_forgetful_pooler(self.database)
        if migrate(self.database):
            self.add_guide()
        self.settings.look()  # What servers share is in the database.

    def add_guide(self) -> None:
        """Add the guide to the library. Questions about the assistant are answered from it."""
        for path in sorted(self.guide.glob("*.md")):
            with path.open("rb") as file:
                self.library.accept(file, path.name, origin=f"{OF_GUIDE}{path.name}")

    def start_command(self, *, answers: bool) -> None:
        """Prepare a command that starts nothing else; a starting server leaves its ``answers`` alone."""
        self.prepare()
        if answers:
            self._lock_file, alone = join_commands(self.data_dir)
            if alone:
                self.membership.leases.forget(commands=True)
            self.membership.enter("command")
            self.assistant.recover()
            self.remote_tools.start()
            self.load_embedder()
            self.keywords.load()
        self._started = True

    def start(self) -> None:
        """Start serving, once: recover from a crash, and load slow parts in the background."""
        with self._start_lock:
            if self._started:
                return
            self._lock_file = lock_data_dir(self.data_dir)
            try:
                self.prepare()
                self.setup.prepare(self.settings.current)
                lock_file, alone = join_commands(self.data_dir)
                with lock_file:
                    if alone:
                        self.membership.leases.forget(commands=True)
                self.membership.enter_server(KINDS[self.role])
                self.assistant.recover()
            except BaseException:
                self._lock_file.close()
                raise
            if self.role != "web":
                self.processing.start()
                self.sources.start()
            self.disk.watch()
            self.upkeep.start()
            self.settings.watch()
            if self.role != "worker":
                self.models.start()
                self.remote_tools.start()
                self.grid_runner.start()
            self._warming = threading.Thread(target=self._warm_up, name="warm-up", daemon=True)
            self._warming.start()
            self._started = True

    def start_library(self) -> None:
        """Process documents in a command that has locked the data folder."""
        self.membership.enter_server("server")
        self.processing.start()

    @property
    def role(self) -> str:
        """What this process does: ``both``, or only the ``web`` or the ``worker`` part."""
        return self.settings.current.role

    def delete_account(self, person: Person, actor: Actor, give_to: Person | None) -> None:
        """Delete an account; its data goes to somebody else, or is erased permanently. Raises LastAdmin."""

        def erase(conversation_ids: Sequence[int], document_ids: Sequence[int]) -> None:
            for conversation_id in conversation_ids:
                self.eraser.erase_conversation(conversation_id)
            for document_id in document_ids:
                with suppress(DocumentNotFound):  # It was deleted with the document it was a newer version of.
                    self.library.remove(document_id)
                with suppress(DocumentNotFound):
                    self.library.remove(document_id, in_trash=True)

        self.accounts.delete(person, actor, give_to, erase)
        self.database.forget_deleted()

    def doctor(self) -> Doctor:
        """Return the consistency checker."""
        if not self.database.is_sqlite:
            self.load_embedder()
            self.vectors.now()  # Whether pgvector is available.
        checks = LibraryChecks(self.database)
        return Doctor(checks, self.chunks, self.embeddings, self.uploads, self.library, self.processing)

    def check_connection(self, tried: Settings | None = None) -> ConnectionCheck:
        """Test the endpoints, or only the model's with the settings ``tried``. Raises NoEndpoint without any."""
        builtin = self.settings.current.embedder.startswith("builtin")
        embed = None if builtin else lambda text: self.embedders.configured().embed([text])[0]
        models = self.models.trying(tried) if tried is not None else self.models
        return check_connection(models, embed, self.reranking.model)

    def close(self) -> None:
        """Stop everything that was started."""
        if self._warming is not None:
            self._warming.join(WARM_UP_SECONDS)
        self.upkeep.stop()
        at_work = self.grid_runner, self.assistant, self.remote_tools, self.sources, self.processing, self.settings
        for part in (*at_work, self.models, self.vectors, self.keywords, self.embedders):
            part.close()
        self.membership.leave()
        self.database.close()
        if self._lock_file is not None:
            self._lock_file.close()

    def _warm_up(self) -> None:
        """Load what the first question would otherwise wait for."""
        try:
            self.files_probe.state()  # The log says what is wrong.
            self.write_probe.state()  # It keeps room on the disk.
            self.load_embedder()
            if self.role != "worker":
                if self.models.connected:
                    self.models.client.warm_up()
                self.vectors.follow()
                self.vectors.warm_up()
                self.keywords.warm_up()
            self.backups.last_status = self.backups.status()
        except AssistantError as error:  # The server is stopping, or the first question will report it.
            log.info("Warming up failed; the first question loads what is missing: %s", error)

    def backup_content(self) -> Kept:
        """Return what a backup holds."""
        return Kept(self.database, self.uploads.store, self.data_dir, self.settings.path, turn_terms)

    def load_embedder(self) -> None:
        """Load the embedding model. Without it search uses keywords only, and /readyz says so."""
        try:
            self.embedders.configured()
        except EmbedderFailed as error:
            log.error("The embedding model cannot be used: %s", error)
