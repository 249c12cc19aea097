"""The only place that chooses implementations and connects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path

from msgspec import structs

from rag_assistant.accounts.accounts import Accounts
from rag_assistant.accounts.limits import PersonalLimits, TokenLimits
from rag_assistant.accounts.setup import Setup
from rag_assistant.answering.answer import Dependencies
from rag_assistant.answering.assistant import Assistant
from rag_assistant.answering.evaluation import Evaluation
from rag_assistant.answering.tools import Tools
from rag_assistant.answering.writer import AnswerWriter, StatelessWriter
from rag_assistant.conversations.actions import HistoryActions
from rag_assistant.conversations.corrections import Corrections
from rag_assistant.conversations.exchange.importing import ConversationImport
from rag_assistant.documents.library import Library
from rag_assistant.documents.page_images import PagePictures
from rag_assistant.documents.sources.bucket import Bucket
from rag_assistant.documents.sources.folder import Folder
from rag_assistant.documents.sources.git import GitRepository
from rag_assistant.documents.sources.watch import Source, Sources
from rag_assistant.documents.unfamiliar import UnfamiliarDocuments
from rag_assistant.documents.uploads import Uploads
from rag_assistant.documents.web_pages import WebPages
from rag_assistant.factory.engines import (
    Search,
    build_files,
    build_remote_tools,
    build_search,
    build_single_sign_on,
    build_stores,
    extra_for,
    files_probe,
    open_bucket,
    open_database,
    open_files,
)
from rag_assistant.factory.membership import Membership
from rag_assistant.llm.local_model import LocalModel
from rag_assistant.llm.local_servers import LocalServers
from rag_assistant.llm.models import LanguageModels
from rag_assistant.retrieval.indexes.vector_search import VectorSearch
from rag_assistant.retrieval.search import Retriever
from rag_assistant.runtime.data_dir import installation_id, open_data_dir
from rag_assistant.runtime.job_queue import JobQueue
from rag_assistant.runtime.public_http import PublicHttp
from rag_assistant.runtime.telemetry.metrics import Observer, open_observer
from rag_assistant.services import Services, Stores
from rag_assistant.settings.agreement import shared_settings
from rag_assistant.settings.live import LiveSettings, open_settings, provide_settings_file
from rag_assistant.settings.package_files import GUIDE, home
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.audit import AuditLog
from rag_assistant.storage.accounts.credentials import CredentialStore
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.accounts.usage import UsageStore
from rag_assistant.storage.conversations.corrections import CorrectionStore
from rag_assistant.storage.database_probe import database_probe
from rag_assistant.storage.documents.sources import SourceStore
from rag_assistant.storage.leases import Leases
from rag_assistant.storage.signals import Signals

# The services of so many people are kept for their next request.
PEOPLE_AT_ONCE = 256


def open_services(environment: Mapping[str, str] | None = None) -> Services:
    """Return the services that the settings ask for, as the application and the commands use them.

    Raises SettingsError if a setting is wrong.
    """
    provide_settings_file(environment)
    return build_services(open_settings(environment))


def build_services(settings: LiveSettings) -> Services:
    """Return the services, connected but not started: nothing runs and nothing is read yet."""
    values = settings.current
    data_dir = open_data_dir(home() / values.data_dir)
    installation = installation_id(data_dir)
    database = open_database(values, data_dir)
    leases = Leases(database, installation, shared_settings(values))
    signals = Signals(database, lambda: leases.has_others)
    files = build_files(values, data_dir)
    stores = build_stores(database, files.owner, signals.tell_text)
    search = build_search(values, data_dir, stores)
    local = LocalModel(values.local_model, values.model_context_tokens) if values.local_model else None
    usage = UsageStore(database)
    counted = TokenLimits(lambda: settings.current, usage)
    models = LanguageModels(lambda: settings.current, local).over(counted.refuse_beyond, counted.count)
    uploads = Uploads(files)
    library = build_library(settings, stores, search, uploads, signals.tell_work)
    tools = Tools(stores.documents, search.retriever, library.remove, build_remote_tools(values))
    with extra_for("otlp_endpoint", "otel"):
        observer = open_observer(values.otlp_endpoint)
    writer = AnswerWriter(stores.turns, stores.answers)
    stateless = StatelessWriter(stores.turns, stores.answers)
    deps = build_dependencies(settings, stores, search.retriever, models, tools, writer, stateless, observer)
    accounts = Accounts(PeopleStore(stores.database), CredentialStore(stores.database), AuditLog(stores.database))
    assistant = Assistant(values.max_running_answers, deps, signals)
    whole = Services(
        **vars(stores),
        settings=settings,
        membership=Membership(
            leases, signals, assistant, library, partial(take_name, stores), beats=not database.is_sqlite
        ),
        probe=database_probe(stores.database),
        files_probe=files_probe(files),
        open_files=lambda where: open_files(where, values, data_dir),
        accounts=accounts,
        setup=Setup(accounts),
        single_sign_on=build_single_sign_on(values, stores.database, accounts),
        observer=observer,
        conversation_import=ConversationImport(stores.exchange, stores.documents),
        embedders=search.embedders,
        vectors=search.vectors,
        keywords=search.keywords,
        retriever=search.retriever,
        models=models,
        local_servers=LocalServers(values.port),
        uploads=uploads,
        library=library,
        web_pages=WebPages(PublicHttp(), library, stores.documents, lambda: settings.current),
        sources=build_sources(values, data_dir, stores, library),
        page_images=PagePictures(stores.documents, stores.scans, library, lambda: settings.current),
        unfamiliar=UnfamiliarDocuments(stores.chunks, search.embedders),
        tools=tools,
        assistant=assistant,
        # Rated questions are asked again as ever, but nothing of the answers is kept.
        evaluation=Evaluation(stores.ratings, stores.branches, structs.replace(deps, writer=stateless)),
        history_actions=HistoryActions(
            stores.conversations, stores.history, models, lambda: tools.schemas, lambda: settings.current
        ),
        corrections=Corrections(CorrectionStore(stores.database), stores.history, stores.documents, search.retriever),
        data_dir=data_dir,
        guide=GUIDE,
    )

    @cache  # Whoever's were forgotten would have none of them for a while.
    def limits_of(person_id: int) -> PersonalLimits:
        return PersonalLimits(UsageStore(database.for_person(person_id)), usage, lambda: settings.current)

    @lru_cache(PEOPLE_AT_ONCE)
    def of_person(person_id: int, changes_documents: bool, process: str) -> Services:
        own = stores.database.for_person(person_id, changes_documents=changes_documents)
        theirs = build_stores(own, files.owner, signals.tell_text, process)
        return services_of_person(whole, theirs, search.vectors, writer, stateless, limits_of(person_id))

    # Who was taken for dead has another name, and nothing may go by the old one any more.
    whole.of_person = lambda person_id, changes_documents: of_person(person_id, changes_documents, whole.turns.owner)
    return whole


def take_name(stores: Stores, process: str) -> None:
    """Let what is worked on go by the name of this process."""
    stores.conversations.owner = stores.turns.owner = stores.answers.owner = stores.documents.worker = process


def services_of_person(
    whole: Services,
    stores: Stores,
    vectors: VectorSearch,
    writer: AnswerWriter,
    stateless: AnswerWriter,
    limits: PersonalLimits,
) -> Services:
    """Return the services over the stores of one person: what is not theirs is not there, for no question and no tool.

    What runs, such as the model, the indexes and the job queues, is shared.
    """
    retriever = Retriever(stores.chunks, whole.keywords, vectors, whole.retriever.reranking)
    library = whole.library.over(stores.documents, limits.refuse_bytes)
    tools = Tools(stores.documents, retriever, library.remove, whole.tools.remote)
    settings = whole.settings
    models = whole.models.over(limits.of_models.refuse_beyond, limits.of_models.count)
    deps = build_dependencies(settings, stores, retriever, models, tools, writer, stateless, whole.observer)
    return replace(
        whole,
        **vars(stores) | {"answers": whole.answers, "embeddings": whole.embeddings},
        conversation_import=ConversationImport(stores.exchange, stores.documents),
        retriever=retriever,
        models=models,
        library=library,
        web_pages=whole.web_pages.over(library, stores.documents),
        page_images=whole.page_images.over(stores.documents, library),
        unfamiliar=UnfamiliarDocuments(stores.chunks, whole.embedders),
        assistant=whole.assistant.over(deps, limits.take_question, limits.accepting),
        limits=limits,
        tools=tools,
        history_actions=HistoryActions(
            stores.conversations, stores.history, models, lambda: tools.schemas, lambda: settings.current
        ),
        corrections=Corrections(CorrectionStore(stores.database), stores.history, stores.documents, retriever),
    )


def build_library(
    settings: LiveSettings,
    stores: Stores,
    search: Search,
    uploads: Uploads,
    tell_work: Callable[[], None],
) -> Library:
    """Return what takes documents in, with job queues of this process."""
    is_shared = not stores.database.is_sqlite
    return Library(
        stores.documents,
        stores.chunks,
        stores.embeddings,
        search.embedders,
        uploads,
        JobQueue,
        lambda: settings.current,
        stores.scans,
        tell_work if is_shared else None,
    )


def build_sources(values: Settings, data_dir: Path, stores: Stores, library: Library) -> Sources:
    """Return what brings documents in by itself. Raises SettingsError."""

    def open_source(address: str) -> Source:
        if address.startswith("git+"):
            return GitRepository(address, data_dir / "clones")
        if address.startswith("s3://"):
            return Bucket(address, open_bucket(address, "document_sources", values, data_dir))
        return Folder(Path(address))

    found = [open_source(address) for address in dict.fromkeys(values.document_sources)]
    return Sources(found, library, stores.documents, SourceStore(stores.database), values.sources_interval_seconds)


def build_dependencies(
    settings: LiveSettings,
    stores: Stores,
    retriever: Retriever,
    models: LanguageModels,
    tools: Tools,
    writer: AnswerWriter,
    stateless: AnswerWriter,
    observer: Observer,
) -> Dependencies:
    """Return what an answer needs."""
    return Dependencies(
        conversations=stores.conversations,
        turns=stores.turns,
        history=stores.history,
        retriever=retriever,
        documents=stores.documents,
        tools=tools,
        models=models,
        writer=writer,
        stateless=stateless,
        observer=observer,
        settings=lambda: settings.current,
    )
