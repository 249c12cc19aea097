"""How documents are read and searched."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from rag_assistant.settings.declaration import Group, Url, at_start, setting

# Credentials in an address would be shown and logged; git and ssh store them elsewhere.
DocumentSource = Annotated[
    str,
    StringConstraints(
        pattern=r"^(/.+|s3://[a-z0-9][a-z0-9.-]+(/[^\s?#]*)?|git\+(https://[^\s/@?#]+/[^\s?#]+"
        r"|ssh://([\w.-]+@)?[^\s/@?#:-][^\s/@?#]*/[^\s?#]+|file:///[^\s?#]+))$"
    ),
]


class DocumentSettings(Group):
    """How documents are read and searched."""

    retrieval_mode: Literal["always", "agent"] = "always"
    """always: documents are searched for every question. agent: the model calls tools to search, read, list and delete
    documents."""
    max_passages: int | None = setting(None, ge=0, le=50)
    """How many passages are sent with a question. null: 6. Follow-ups add up to two that were cited before."""
    passages_token_budget: int | None = setting(None, ge=100)
    """Maximum tokens for all passages of a question together; the best one is always sent. null: no separate limit."""
    reading_token_budget: int = setting(30_000, ge=0)
    """Maximum tokens for reading all of the documents that a question such as "summarise" or "list all" needs, in
    requests before the answer. 0: no such requests; the answer rests on the passages that were found."""
    query_rewriting: Literal["model", "words", "off"] = "model"
    """How documents are searched for a follow-up question. model: a connected model rewrites it, which takes one more
    short request. words: the words it depends on are added from the conversation; without a model, this is always
    used. off: the question as it is."""
    chunk_chars: int = setting(900, ge=200, le=8000)
    """Maximum length of a document chunk, in characters. Existing documents need reindex --read-again."""
    embedder: str = at_start(
        "builtin",
        allowed="builtin, builtin-multilingual, or endpoint:MODEL such as endpoint:text-embedding-3-small",
        pattern=r"^(builtin|builtin-multilingual|endpoint:\S+)$",
    )
    """What embeds documents and questions: the built-in embedding model for English, the one for many languages (needs
    the extra multilingual), or one at an OpenAI-compatible endpoint. After a change, everything is re-embedded in the
    background."""
    embedding_base_url: Url | None = at_start(None)
    """The endpoint for embeddings. null: the one that answers questions."""
    embedding_api_key: str | None = at_start(None)
    """API key for the embedding endpoint. null: openai_api_key, if it is the same endpoint. Never shown or logged."""
    rerank_model: str | None = at_start(None, min_length=1)
    """A reranking model at an endpoint with /rerank (Jina, Cohere, vLLM, llama.cpp). It sorts the best 50 passages for
    each question. null: the search's own order."""
    rerank_base_url: Url | None = at_start(None)
    """The endpoint for reranking, such as https://api.jina.ai/v1. null: the one that answers questions."""
    rerank_api_key: str | None = at_start(None)
    """API key for the reranking endpoint. null: openai_api_key, if it is the same endpoint. Never shown or logged."""
    chroma_url: Url | None = at_start(None)
    """A Chroma server. null: pgvector, where the database is PostgreSQL and has it; otherwise Chroma in a process of
    our own."""
    chroma_headers: dict[str, str] | None = at_start(
        None, allowed='an object such as {"Authorization": "Bearer ..."}, or null'
    )
    """Headers for chroma_url, such as its token. Never shown or logged."""
    trash_days: int = setting(30, ge=0, le=3650)
    """How many days a deleted document can be restored, and, with retention_days, a deleted conversation. 0: erased
    at once."""
    max_upload_mb: int = setting(50, ge=1)
    """Maximum size of a document, in megabytes."""
    web_pages: bool = False
    """Let people add web pages by their address. The server fetches them, from public addresses only; see
    docs/security.md."""
    document_sources: list[DocumentSource] = at_start(
        [],
        allowed='a list of folders, git repositories and S3 prefixes, such as ["/srv/notes", '
        '"git+https://git.example/team/docs.git", "s3://bucket/manuals"]',
    )
    """Places from which documents are added, updated and deleted automatically. See docs/documents.md."""
    sources_interval_seconds: float = at_start(300.0, ge=1)
    """How often each of document_sources is checked."""
    extraction_timeout_seconds: float = setting(120.0, gt=0)
    """Maximum time to read one document."""
    ocr: Literal["auto", "off"] = setting("auto", allowed="auto or off")
    """Recognise the text of scanned pages and images if the extra ocr is installed (auto), or never (off). A page may
    take up to extraction_timeout_seconds."""
