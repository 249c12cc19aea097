"""Serve for real: gunicorn with one process and as many threads as answers may be read at once."""

from __future__ import annotations

import gc
import logging
import os
import resource
import socket
import sys
from collections.abc import MutableMapping
from datetime import timedelta
from math import ceil
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger

from rag_assistant.records.errors import AssistantError
from rag_assistant.runtime.courtesy import take_turns_often
from rag_assistant.runtime.data_dir import lock_data_dir, open_data_dir
from rag_assistant.runtime.log_lines import configure_logging
from rag_assistant.runtime.memory import limit_arenas
from rag_assistant.runtime.supervised_process import end_with_parent
from rag_assistant.settings.live import open_settings
from rag_assistant.settings.package_files import home
from rag_assistant.settings.schema import Settings

log = logging.getLogger(__name__)
access_log = logging.getLogger("rag_assistant.access")

# Beside those whose answers are written, some threads that refuse what is too much.
SPARE_THREADS = 24
# Connections that wait for a thread are cheaper than clients that wait for a connection.
MAX_CONNECTIONS = 4096
# What is open beside clients and models: the database, the index, the log, document files.
SPARE_DESCRIPTORS = 100
# Beyond what the settings leave to clients and answers.
GRACEFUL_TIMEOUT_SECONDS = 5.0
# How long the process of a server that was killed may take to end on a busy machine.
PATIENCE_SECONDS = 2.0


class ServerLog(Logger):
    """gunicorn's log as lines of ours, and a line for each answered request if ``access_log`` is set."""

    _start_failed = False

    def setup(self, cfg: Any) -> None:
        """Hand over to our own log what gunicorn would print by itself."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True
        access_log.setLevel(logging.INFO)  # Who asks for it wants it at every log_level.

    def error(self, msg: object, *args: object, **kwargs: Any) -> None:
        """Log an error, but not gunicorn's account of a start that failed: a sentence has said why."""
        self._start_failed |= args[1:] == (Arbiter.WORKER_BOOT_ERROR,)
        if not self._start_failed:
            super().error(msg, *args, **kwargs)

    def access(self, resp: Any, _req: Any, wsgi: MutableMapping[str, Any], request_time: timedelta) -> None:
        """Log a request that was answered to its end. What was searched for stands behind the ? and is left out."""
        if not self.cfg.accesslog:
            return
        fields = {
            "method": wsgi["REQUEST_METHOD"],
            "path": wsgi["RAW_URI"].partition("?")[0],
            "status": int(str(resp.status).partition(" ")[0]),
            "bytes": resp.sent or 0,
            "milliseconds": request_time // timedelta(milliseconds=1),
        }
        sentence = "%(method)s %(path)s %(status)d, %(bytes)d bytes, %(milliseconds)d ms"
        access_log.info(sentence, fields, extra={"fields": fields})


class Server(BaseApplication):
    """gunicorn, configured by our settings. The application is made in the process that serves it."""

    def __init__(self, app_uri: str, settings: Settings) -> None:
        self._app_uri = app_uri
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Set what differs from gunicorn's own choices."""
        settings = self._settings
        options = {
            "bind": f"[{settings.host}]:{settings.port}"
            if ":" in settings.host
            else f"{settings.host}:{settings.port}",
            "workers": 1,
            "worker_class": "rag_assistant.server.worker.Worker",
            "forwarder_headers": "",
            # Which proxies are believed, and what, is decided in one place: web/entry.py.
            "secure_scheme_headers": {},
            "threads": settings.max_running_answers + SPARE_THREADS,
            "worker_connections": max_connections(settings),
            "backlog": 4096,
            "timeout": 60,
            "graceful_timeout": ceil(settings.drain_seconds + settings.last_answers_seconds + GRACEFUL_TIMEOUT_SECONDS),
            "keepalive": 5,
            "limit_request_line": 8190,  # The most that it can be set to.
            "umask": 0o077,
            "loglevel": "error",
            "logger_class": ServerLog,
            "accesslog": "-" if settings.access_log else None,
            "when_ready": say_where,
            "post_fork": prepare_process,
            "worker_exit": leave_in_order,
            "worker_tmp_dir": "/dev/shm",  # noqa: S108 - the heartbeat's file; a slow disk must not stop it
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    @property
    def base_path(self) -> str:
        """Where the application is found."""
        return self._settings.base_path

    def load(self) -> Any:
        """Make the application and start its services. Raises AssistantError."""
        # The process that watches over this one loads none of it, and stays small.
        from rag_assistant.server.application import load_application

        return load_application(self._app_uri)


def serve(app_uri: str) -> None:
    """Serve an application until the process is ended.

    Exits with a sentence if a setting is wrong, or if the data folder or the port is in use. ``app_uri`` names it as
    gunicorn does, ``module:callable()``: it is loaded in the process that serves it.
    """
    try:
        live = open_settings()
        settings = live.current
        data_dir = open_data_dir(home() / settings.data_dir)
        # The process that serves takes it again, and for good. That of a server which was killed may be ending still.
        lock_data_dir(data_dir, PATIENCE_SECONDS).close()
    except AssistantError as error:
        sys.exit(f"Cannot start. {error}")
    configure_logging(settings.log_level, settings.log_format)
    refuse_used_port(settings)
    print(f"Settings: {live.path}\nData: {data_dir}", flush=True)
    server = Server(app_uri, settings)
    gc.freeze()  # A collection would copy what the two processes share.
    gc.enable()
    server.run()


def max_connections(settings: Settings) -> int:
    """Return how many clients may be connected at once: an answer needs a second descriptor, for its model."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    left = sys.maxsize if hard == resource.RLIM_INFINITY else hard - settings.max_running_answers - SPARE_DESCRIPTORS
    return max(settings.max_running_answers + SPARE_THREADS + 1, min(MAX_CONNECTIONS, left))


def refuse_used_port(settings: Settings) -> None:
    """Exit with a sentence if somebody else listens on our port."""
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            sys.exit(
                f"Cannot start. Port {settings.port} of {settings.host} cannot be used ({error.strerror}). "
                "Choose another with --port or the variable PORT, such as PORT=8001."
            )


def say_where(arbiter: Arbiter) -> None:
    """Print the address when we listen on it; PORT=0 lets the system choose."""
    host, port = arbiter.LISTENERS[0].getsockname()[:2]
    print(f"The assistant is starting on http://{host}:{port}", flush=True)


def prepare_process(_arbiter: Arbiter, _worker: Any) -> None:
    """Set in the process that serves what is to hold before anything is loaded."""
    # A master that is killed could not tell us; gunicorn would see it after seconds, with the port still taken.
    end_with_parent()
    limit_arenas()
    take_turns_often()
    gc.disable()  # Until everything is loaded; nothing of it is garbage.


def leave_in_order(_arbiter: Arbiter, worker: Any) -> None:
    """Keep how far answers came, let others take over, leave SQLite as one file, send the last traces, and end.

    A log beside it would be missed by whoever copies only that. Python's own end is left out: a thread that embeds
    or loads meanwhile would come back from C++ into an interpreter that has gone, which ends a process by SIGABRT.
    """
    loading = getattr(worker, "loading", None)
    if loading is None:  # Told by the master, of a worker that has ended.
        return
    ending = sys.exc_info()[1]
    try:
        if loading.app is not None:
            services = loading.app.extensions["assistant"]
            services.assistant.close()
            services.membership.leave()
            services.database.checkpoint()
            services.observer.close()
    except Exception:
        log.exception("The server did not leave in order")
    finally:
        logging.shutdown()
        os._exit(int(ending.code or 0) if isinstance(ending, SystemExit) else 1)
