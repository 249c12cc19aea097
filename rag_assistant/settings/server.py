"""Where the server is reached, where it keeps what, and what it tells."""

from __future__ import annotations

from typing import Literal

from rag_assistant.settings.declaration import (
    HTTP_URL,
    HTTP_URL_PATTERN,
    NETWORKS,
    WHOLE_FROM_1,
    Group,
    Network,
    setting,
)


class ServerSettings(Group):
    """Where the server is reached, where it keeps what, and what it tells."""

    role: Literal["both", "web", "worker"] = setting(
        "both",
        "one of both, web, worker",
        "What this process does. web: pages, API and answers. worker: documents; it serves only /healthz, /readyz and "
        "/metrics. Either of them needs PostgreSQL.",
        live=False,
        advanced=True,
    )
    host: str = setting(
        "127.0.0.1",
        "an address or a host name of this machine, such as 127.0.0.1 or 0.0.0.0",
        "The address to listen on. One that others can reach needs an account first: rag-assistant accounts add NAME "
        "--admin.",
        live=False,
        pattern=r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*)$",
    )
    port: int = setting(8000, "a whole number from 0 to 65535", "The port to listen on.", live=False, ge=0, le=65535)
    allowed_hosts: tuple[str, ...] = setting(
        (),
        'a list of host names, such as ["assistant.example"]',
        "Additional host names under which the assistant may be reached. All others are refused.",
        live=False,
        strict=False,
    )
    trusted_proxies: tuple[Network, ...] = setting(
        ("127.0.0.1", "::1"),
        NETWORKS,
        "Proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted.",
        live=False,
        strict=False,
        advanced=True,
    )
    base_path: str = setting(
        "",
        'a path such as "/rag", or "" for none',
        "The path below which a proxy serves the assistant.",
        live=False,
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
    )
    max_running_answers: int = setting(
        500,
        WHOLE_FROM_1,
        "Maximum number of answers running at once; further questions are refused with 503.",
        live=False,
        ge=1,
    )
    data_dir: str = setting(
        "data",
        "a folder's path",
        "Where all data is stored. Relative paths start at the folder of app.py, or, once installed, at the platform's "
        "data folder, such as ~/.local/share/rag-assistant.",
        live=False,
        min_length=1,
    )
    database_url: str | None = setting(
        None,
        "a database URL, such as postgresql+psycopg://user:password@host/name, or null",
        "The database. null: SQLite in data_dir.",
        live=False,
    )
    files_url: str | None = setting(
        None,
        "s3:// with a bucket, and a prefix if you like, such as s3://bucket/assistant, or null",
        "Where uploaded files are kept. null: in data_dir. s3://: in an S3 bucket, which several servers can share. "
        "Its keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment. Needs the extra s3.",
        live=False,
        pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/-]*)?$",
    )
    s3_endpoint_url: str | None = setting(
        None,
        HTTP_URL,
        "The S3 server for files_url. null: Amazon's.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    s3_region: str | None = setting(
        None,
        "a region's name such as eu-central-1, or null",
        "The bucket's region. null: AWS_REGION, otherwise us-east-1.",
        live=False,
        pattern=r"^[a-z0-9-]+$",
    )
    s3_path_style: bool = setting(
        True,
        "true or false",
        "Where s3_endpoint_url takes the bucket's name: in the path (true), or as a part of the host name (false).",
        live=False,
    )
    database_connections: int = setting(
        24,
        "a whole number, 5 or more",
        "Maximum number of connections to PostgreSQL that this process opens at once, not counting a few lasting ones.",
        live=False,
        ge=5,
        advanced=True,
    )
    drain_seconds: float = setting(
        0.0,
        "a number of seconds, 0 or more",
        "How long this process still accepts questions once it is told to stop, while /readyz returns 503, so that a "
        "proxy sends them elsewhere.",
        live=False,
        ge=0,
        advanced=True,
    )
    last_answers_seconds: float = setting(
        5.0,
        "a number of seconds, 0 or more",
        "How long running answers may continue after that before they are interrupted.",
        live=False,
        ge=0,
        advanced=True,
    )
    page_language: Literal["auto", "en", "de", "fr", "es", "zh", "ar"] = setting(
        "auto",
        "one of auto, en, de, fr, es, zh, ar",
        "The language of the page. auto: the first of these that the browser asks for, otherwise English.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "INFO", "one of DEBUG, INFO, WARNING, ERROR", "How much is logged.", live=False
    )
    log_format: Literal["text", "json"] = setting(
        "text",
        "one of text, json",
        "The format of the log. json: for programs that collect logs.",
        live=False,
        advanced=True,
    )
    access_log: bool = setting(
        False, "true or false", "Log a line for each request, without search terms.", live=False, advanced=True
    )
    otlp_endpoint: str | None = setting(
        None,
        HTTP_URL,
        "Where traces of answers are sent (OpenTelemetry over HTTP), such as http://localhost:4318. null: nowhere. "
        "Needs the extra otel.",
        live=False,
        pattern=HTTP_URL_PATTERN,
        advanced=True,
    )
