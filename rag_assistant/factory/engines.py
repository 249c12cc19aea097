"""Creates what the settings configure; extras are only imported if a setting needs them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_assistant.accounts.accounts import Accounts
from rag_assistant.accounts.single_sign_on import SingleSignOn
from rag_assistant.answering.remote_tools import RemoteTools
from rag_assistant.documents.sources.folder import Bucket, Folder
from rag_assistant.documents.sources.git import GitRepository
from rag_assistant.documents.sources.watch import Source
from rag_assistant.files import FileStore
from rag_assistant.files.store import FolderFiles
from rag_assistant.llm.client import OPENAI_BASE_URL
from rag_assistant.llm.embeddings import EndpointEmbedder, EndpointReranker
from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import EmbedderFailed, SettingsError
from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.retrieval.embeddings.multilingual_e5 import MultilingualE5
from rag_assistant.retrieval.embeddings.registry import EmbeddingModel
from rag_assistant.retrieval.indexes.chroma import ChromaIndex
from rag_assistant.retrieval.indexes.pgvector import PgVectorIndex
from rag_assistant.runtime.data_dir import installation_id
from rag_assistant.settings.package_files import command_for_extra
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.credentials import LinkedIdentityStore
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.vector_table import VectorIndexes, VectorTable

if TYPE_CHECKING:
    from rag_assistant.files.s3 import S3Files

log = logging.getLogger(__name__)

# In the data folder: files derived from the embedding model's file at the first start.
EMBEDDERS = "embedders"


def open_database(values: Settings, data_dir: Path) -> Database:
    """Return the database, not connected yet. Raises SettingsError."""
    if values.database_url is None and values.role != "both":
        raise SettingsError(
            f'role is "{values.role}", which needs a database that other processes share: set database_url to one of '
            'PostgreSQL, or role to "both".'
        )
    return Database(values.database_url or sqlite_url(data_dir), values.database_connections)


def build_single_sign_on(values: Settings, database: Database, accounts: Accounts) -> SingleSignOn:
    """Return single sign-on; the provider isn't contacted yet. Raises SettingsError."""
    if values.proxy_user_header is not None:
        if not values.proxy_user_from:
            raise SettingsError("proxy_user_header is set; set proxy_user_from, too: the addresses of the proxy.")
        if values.oidc_issuer is not None:
            raise SettingsError("proxy_user_header and oidc_issuer are both set. Remove one: either signs people in.")
    issuer = values.oidc_issuer
    if issuer is None:
        return SingleSignOn(accounts, LinkedIdentityStore(database), values, None)
    with extra_for("oidc_issuer", "oidc"):
        from rag_assistant.accounts.oidc import OpenIdProvider, is_safe_url
    if not is_safe_url(issuer):
        raise SettingsError(f'oidc_issuer is "{issuer}"; it must start with https://, except on this machine.')
    if values.oidc_client_id is None:
        raise SettingsError("oidc_issuer is set; set oidc_client_id, too: what the provider calls this server.")
    if values.oidc_create_accounts and not (values.oidc_allowed_domains or values.oidc_allowed_groups):
        raise SettingsError(
            "oidc_create_accounts is true; say for whom, in oidc_allowed_domains or oidc_allowed_groups. "
            '["*"] as oidc_allowed_domains is everybody whom the provider lets in.'
        )
    label = values.oidc_label or urlsplit(issuer).hostname or issuer
    provider = OpenIdProvider(issuer, values.oidc_client_id, values.oidc_client_secret, values.oidc_scopes, label)
    return SingleSignOn(accounts, LinkedIdentityStore(database), values, provider)


def open_files(where: str, values: Settings, data_dir: Path) -> FileStore:
    """Return the store at an ``s3://`` address, which alone loads a client, or in a folder. Raises SettingsError."""
    if not where.startswith("s3://"):
        # If several processes share a folder of files, any of them may read documents.
        return FolderFiles(Path(where), installation_id((data_dir / "uploads").resolve().parent))
    return open_bucket(where, "files_url", values, data_dir)


def open_bucket(where: str, setting: str, values: Settings, data_dir: Path) -> S3Files:
    """Return the bucket and prefix of an ``s3://`` address in a setting. Raises SettingsError."""
    with extra_for(setting, "s3"):
        from rag_assistant.files.s3 import S3Files
    return S3Files(where, values.s3_endpoint_url, values.s3_region, values.s3_path_style, data_dir / "transfers")


@contextmanager
def extra_for(setting: str, extra: str) -> Iterator[None]:
    """Say how to install an extra if its package is missing. Raises SettingsError."""
    try:
        yield
    except ImportError as error:
        raise SettingsError(
            f"{setting} needs the package {error.name}, which is not installed. Run `{command_for_extra(extra)}`."
        ) from error


def open_index(
    values: Settings, data_dir: Path, database: Database, embeddings: EmbeddingStore, model: KnownEmbedder
) -> ChromaIndex | PgVectorIndex:
    """Return the vector index of a model: pgvector if available, otherwise Chroma."""
    problem = None
    if not database.is_sqlite and values.chroma_url is None:
        table = VectorTable(database)
        problem = table.prepare()
        if problem is None:
            return PgVectorIndex(embeddings, table, VectorIndexes(database), model)
        log.warning(problem)
    url, headers = values.chroma_url, values.chroma_headers
    return ChromaIndex(embeddings, model, data_dir / "chroma", url, headers, notice=problem)


def open_sources(values: Settings, data_dir: Path) -> list[Source]:
    """Return the configured sources of documents. Raises SettingsError."""
    sources: list[Source] = []
    for address in dict.fromkeys(values.document_sources):
        if address.startswith("git+"):
            sources.append(GitRepository(address, data_dir / "clones"))
        elif address.startswith("s3://"):
            sources.append(Bucket(address, open_bucket(address, "document_sources", values, data_dir)))
        else:
            sources.append(Folder(Path(address)))
    return sources


def build_remote_tools(values: Settings) -> RemoteTools:
    """Return the configured servers' tools, not connected yet; without any, no SDK is loaded. Raises SettingsError."""
    if not values.mcp_servers:
        return RemoteTools()
    with extra_for("mcp_servers", "mcp"):
        from rag_assistant.llm.tool_servers.connection import ToolServer
    return RemoteTools([ToolServer(name, where) for name, where in values.mcp_servers.items()])


def embedder_source(values: Settings) -> dict[str, Any]:
    """Return the settings that configure the embedding model, without what may hold a key."""
    source: dict[str, Any] = {"embedder": values.embedder}
    if values.embedder.startswith("endpoint:"):
        source["base_url"] = (values.embedding_base_url or values.openai_base_url or OPENAI_BASE_URL).rstrip("/")
    return source


def open_embedder(source: dict[str, Any], values: Settings, data_dir: Path) -> EmbeddingModel:
    """Return the embedding model of a source, not loaded yet. Raises EmbedderFailed for one of an earlier version."""
    kind, _, name = source["embedder"].partition(":")
    if kind == "builtin":
        return minilm.MiniLM(data_dir / EMBEDDERS)
    if kind == "builtin-multilingual":
        return MultilingualE5()
    if kind == "endpoint":
        # The key of one endpoint is never sent to another.
        own = source["base_url"] == embedder_source(values).get("base_url")
        shared = values.openai_api_key if values.embedding_base_url is None else None
        key = (values.embedding_api_key or shared) if own else None
        return EndpointEmbedder(source["base_url"], key, name, values.connect_timeout_seconds)
    raise EmbedderFailed(f'The embedding model "{source["embedder"]}" is no longer supported.')


def open_reranker(values: Settings) -> EndpointReranker | None:
    """Return the configured reranking model, ``None`` if there is none."""
    if values.rerank_model is None:
        return None
    base_url = values.rerank_base_url or values.openai_base_url or OPENAI_BASE_URL
    # The key of one endpoint is never sent to another.
    shared = values.openai_api_key if values.rerank_base_url is None else None
    return EndpointReranker(base_url, values.rerank_api_key or shared, values.rerank_model)
