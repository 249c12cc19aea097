"""Where the server listens, where it stores data, and what it logs."""

from typing import Literal

from rag_assistant.settings.declaration import NETWORKS, Group, Network, Origin, Url, at_start, setting

BUCKET = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/-]*)?$"


class ServerSettings(Group):
    """Where the server listens, where it stores data, and what it logs."""

    role: Literal["both", "web", "worker"] = at_start("both")
    """What this process does. web: pages, API and answers. worker: documents; it serves only /healthz, /readyz and
    /metrics. Either of them needs PostgreSQL."""
    host: str = at_start(
        "127.0.0.1",
        allowed="an address or a host name of this machine, such as 127.0.0.1 or 0.0.0.0",
        pattern=r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*)$",
    )
    """The address to listen on. If others can reach it, create an account first: rag-assistant accounts add NAME
    --admin."""
    port: int = at_start(8000, ge=0, le=65535)
    """The port to listen on."""
    allowed_hosts: tuple[str, ...] = at_start((), allowed='a list of host names, such as ["assistant.example"]')
    """Additional host names under which the assistant may be reached. All others are refused."""
    cors_origins: tuple[Origin, ...] = at_start((), allowed='a list of origins, such as ["https://app.example"]')
    """Origins whose pages may use the API (/api and /v1) from a browser, with a token and never with cookies."""
    trusted_proxies: tuple[Network, ...] = at_start(("127.0.0.1", "::1"), allowed=NETWORKS)
    """Proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted."""
    base_path: str = at_start("", allowed='a path such as "/rag", or "" for none', pattern=r"^(/[A-Za-z0-9._~-]+)*$")
    """The path below which a proxy serves the assistant."""
    max_running_answers: int = at_start(500, ge=1)
    """Maximum number of answers running at once; further questions are refused with 503."""
    data_dir: str = at_start("data", allowed="a folder's path", min_length=1)
    """Where all data is stored. Relative paths start at the folder of app.py, or, once installed, at the platform's
    data folder, such as ~/.local/share/rag-assistant."""
    database_url: str | None = at_start(
        None, allowed="a database URL, such as postgresql+psycopg://user:password@host/name, or null"
    )
    """The database. null: SQLite in data_dir."""
    files_url: str | None = at_start(
        None,
        allowed="s3:// with a bucket, and a prefix if you like, such as s3://bucket/assistant, or null",
        pattern=BUCKET,
    )
    """Where uploaded files are kept. null: in data_dir. s3://: in an S3 bucket, which several servers can share. Its
    keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment. Needs the extra s3."""
    s3_endpoint_url: Url | None = at_start(None)
    """The S3 server for files_url. null: Amazon's."""
    s3_region: str | None = at_start(
        None, allowed="a region's name such as eu-central-1, or null", pattern=r"^[a-z0-9-]+$"
    )
    """The bucket's region. null: AWS_REGION, otherwise us-east-1."""
    s3_path_style: bool = at_start(True)
    """Put the bucket's name in the path of s3_endpoint_url (true), or in its host name (false)."""
    database_connections: int = at_start(24, ge=5)
    """Maximum number of connections to PostgreSQL that this process opens at once, not counting a few lasting ones."""
    drain_seconds: float = at_start(0.0, ge=0)
    """How long this process still accepts questions after it is told to stop, while /readyz returns 503 so that a proxy
    sends new ones elsewhere."""
    last_answers_seconds: float = at_start(5.0, ge=0)
    """How long running answers may continue after that before they are interrupted."""
    backup_folder: str | None = setting(
        None, allowed="a folder's absolute path, s3:// with a bucket and a prefix, or null", pattern=f"^/.|{BUCKET}"
    )
    """Where the server writes backups by itself: a folder on another disk, which all servers on one database share, or
    a prefix in S3. null: nowhere."""
    backup_every_hours: int = setting(24, ge=1)
    """How old the newest backup in backup_folder becomes before the next one is made."""
    backups_kept: int = setting(7, ge=1)
    """How many backups stay in backup_folder; older ones are deleted."""
    maintenance: bool = False
    """Refuse questions and changes of documents with 503, as for an upgrade. Sources wait. Reading works."""
    announcement: str | None = setting(None, allowed="text of up to 300 characters, or null", max_length=300)
    """A line for everybody at the top of each page. null: none."""
    page_language: Literal["auto", "en", "de", "fr", "es", "zh", "ar"] = "auto"
    """The language of the page. auto: the first of these that the browser asks for, otherwise English."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = at_start("INFO")
    """How much is logged."""
    log_format: Literal["text", "json"] = at_start("text")
    """The format of the log. json: for programs that collect logs."""
    access_log: bool = at_start(False)
    """Log a line for each request, without search terms."""
