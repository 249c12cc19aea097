"""Start the parts of a cluster in their order, and end all of them; each can be ended and started by itself."""

import contextlib
import random
import socket
import time
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deploy.cluster.postgres import Postgres
from deploy.cluster.proxy import Proxy, ProxyKind
from tests.testkit.s3_server import S3Server
from tests.testkit.server_process import MIN_EPHEMERAL_PORT, Launch, ServerProcess, run_command

WEBS = 3
WORKERS = 2
READY_TIMEOUT_SECONDS = 60.0
FIRST_PORT = 20_000
# Below which all files lie in the bucket.
PREFIX = "cluster"
# The proxy looks every second and wants two answers; then nobody sends anything more.
DRAIN_SECONDS = 4.0
LAST_ANSWERS_SECONDS = 20.0


class Cluster:
    """PostgreSQL, S3, webs, workers and a proxy over one folder, which may have been used before.

    ``settings`` are environment variables for webs and workers.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        *,
        port: int = 0,
        launch: Launch = run_command,
        careless: bool = False,
        proxy: ProxyKind | None = None,
    ) -> None:
        self.folder = folder
        ports = free_ports(WEBS + WORKERS + 3)
        self.postgres = Postgres(folder / "postgres", ports.pop(), careless=careless)
        self.s3 = S3Server(folder / "s3", ports.pop())
        common = self.s3.settings(PREFIX) | {
            "DATABASE_URL": self.postgres.url,
            "DRAIN_SECONDS": str(DRAIN_SECONDS),
            "LAST_ANSWERS_SECONDS": str(LAST_ANSWERS_SECONDS),
        }

        def server(name: str, role: str) -> ServerProcess:
            own = folder / name
            own.mkdir(exist_ok=True)
            given = common | dict(settings) | {"ROLE": role, "PORT": str(ports.pop())}
            return ServerProcess(own, launch, **given)

        self.webs = [server(f"web{number}", "web") for number in range(1, WEBS + 1)]
        self.workers = [server(f"worker{number}", "worker") for number in range(1, WORKERS + 1)]
        webs = [web.port for web in self.webs]
        self.proxy = Proxy(port or ports.pop(), webs, folder / "proxy.log", proxy)
        self.url = f"http://127.0.0.1:{self.proxy.port}"
        # Asked as a server is, and passes it on.
        self.entrance = ServerProcess(folder, PORT=str(self.proxy.port), DATABASE_URL=self.postgres.url)

    @property
    def servers(self) -> list[ServerProcess]:
        """The webs and the workers."""
        return [*self.webs, *self.workers]

    def start(self) -> None:
        """Start everything that does not run yet, and return when the proxy passes requests on."""
        if self.postgres.process is None:
            self.postgres.start()
        if self.s3.process is None:
            self.s3.start()
        # The first one makes the tables, while the others wait.
        for server in self.servers:
            server.launch()
        with ThreadPoolExecutor(len(self.servers)) as pool:
            list(pool.map(lambda server: server.wait_until_ready("/readyz"), self.servers))
        self.proxy.start()
        self.wait_for_proxy()

    def wait_for_proxy(self) -> None:
        """Return when the proxy passes a request on. Raises RuntimeError if it never does."""
        end = time.monotonic() + READY_TIMEOUT_SECONDS
        while time.monotonic() < end and self.proxy.runs:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                return
            time.sleep(0.05)
        raise RuntimeError(f"The proxy at {self.url} passes nothing on; see {self.proxy.log}.")

    def stop(self) -> None:
        """End everything that was started: the proxy, then all servers, then what they keep everything in."""
        self.proxy.stop()
        running = [one for one in self.servers if one.process is not None and one.process.poll() is None]
        for server in running:
            server.kill()
        if self.s3.process is not None:
            self.s3.kill()
        self.postgres.stop()


def free_ports(count: int) -> list[int]:
    """Return ports at which nobody listens, and that the system gives nobody by itself."""
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        # From a place of its own, since others may look at the same moment.
        first = random.randrange(FIRST_PORT, MIN_EPHEMERAL_PORT - 1000)
        for port in range(first, MIN_EPHEMERAL_PORT):
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == count:
                return found
    raise OSError(f"There are no {count} free ports.")
