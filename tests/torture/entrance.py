"""A cluster in the place of one server, so that what breaks one server can break a cluster, too."""

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from sqlalchemy import text

from deploy.cluster.cluster import Cluster
from rag_assistant.storage.database import Database
from tests.testkit.server_process import Launch, ServerProcess
from tests.torture.stage import Outcome, Stage, end

# How much less is tried than on one server: all of a cluster's processes share this machine.
SHARE = 5


class Entrance(ServerProcess):
    """The proxy of a cluster. ``kill`` ends one of the webs, whichever it is; ``start`` starts it again."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        super().__init__(cluster.folder, PORT=str(cluster.proxy.port))
        # For commands: what one of the webs has.
        self.environment = cluster.webs[0].environment
        self._cluster = cluster
        self._chance = chance
        self._killed: list[ServerProcess] = []

    def start(self, path: str = "/readyz") -> float:
        """Start what was killed, and return after how many seconds it answered."""
        began = time.monotonic()
        while self._killed:
            self._killed.pop().start(path)
        return time.monotonic() - began

    def kill(self) -> None:
        """End one of the webs at once."""
        self._killed.append(self._chance.choice([web for web in self._cluster.webs if web not in self._killed]))
        self._killed[-1].kill()


class ClusterStage(Stage):
    """Gives a cluster where one server is asked for. What ends with the stage ends with the one it is made from."""

    def __init__(self, stage: Stage) -> None:
        self.__dict__ = stage.__dict__
        self._cluster: Cluster | None = None

    def count(self, short: int, full: int) -> int:
        """Return how often to try."""
        return max(short, full // SHARE) if self.is_full else short

    def server(
        self,
        url: str,
        settings: Mapping[str, str] = MappingProxyType({}),
        *,
        folder: Path | None = None,
        launch: Launch | None = None,
    ) -> ServerProcess:
        """Return the entrance to a cluster; with a folder, a server with a database and a prefix of its own there."""
        if self._cluster is not None and folder is not None:
            return super().server(url, dict(settings) | self._own_place(folder.name), folder=folder, launch=launch)
        self._cluster = self.cluster(url, settings)
        return Entrance(self._cluster, self.chance)

    def _own_place(self, name: str) -> dict[str, str]:
        assert self._cluster is not None
        database = Database(self._cluster.postgres.url)
        with database.outside_transactions() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
        database.close()
        own = database.url.set(database=name).render_as_string(hide_password=False)
        return self._cluster.s3.settings(name) | {"DATABASE_URL": own}

    def victim(self, url: str) -> ServerProcess:
        """Return one of the webs, not running, which reads documents, too, since here no worker does."""
        cluster = self.cluster(url)
        first = cluster.webs[0]
        for server in (first, *cluster.workers):
            end(server)
        first.environment["ROLE"] = "both"
        return first


def on_cluster(fault: Callable[[Stage], Outcome]) -> Callable[[Stage], Outcome]:
    """Return what breaks a cluster as ``fault`` breaks one server."""
    return lambda stage: fault(ClusterStage(stage))
