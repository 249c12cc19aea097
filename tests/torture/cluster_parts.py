"""What everything stands on in a cluster, killed, held up and slow under clients: PostgreSQL and the proxy."""

import time
from collections.abc import Callable
from typing import Protocol

from deploy.cluster.cluster import Cluster
from tests.testkit.server_process import ServerProcess
from tests.torture.cluster_clients import beside_clients
from tests.torture.stage import Outcome, Stage, until

CLIENTS = 8
SECONDS_BETWEEN_WORDS = 0.05
RECOVERY_TIMEOUT_SECONDS = 60.0
# Of a part that is slow: how long it rests and how long it works, by turns.
RESTING_SECONDS, WORKING_SECONDS = 0.1, 0.02


class Part(Protocol):
    """A process of a cluster that is no server of ours."""

    def start(self) -> None:
        """Start it."""

    def kill(self) -> None:
        """End it at once."""

    def pause(self) -> None:
        """Hold it up."""

    def resume(self) -> None:
        """Let it go on."""


def killed(part: Part, meanwhile: Callable[[], None]) -> None:
    """Kill a part and start it again."""
    part.kill()
    meanwhile()
    part.start()


def held_up(part: Part, meanwhile: Callable[[], None]) -> None:
    """Hold a part up: connections to it stay open, and nothing is answered."""
    part.pause()
    meanwhile()
    part.resume()


def slowed(part: Part, seconds: float) -> None:
    """Let a part work a sixth of the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        part.pause()
        time.sleep(RESTING_SECONDS)
        part.resume()
        time.sleep(WORKING_SECONDS)


def in_trouble(stage: Stage, part: Part, number: int, longest: float, meanwhile: Callable[[], None]) -> None:
    """Kill a part, hold it up for up to ``longest`` seconds, or slow it down, by turns."""

    def wait() -> None:
        meanwhile()
        time.sleep(stage.chance.uniform(0, longest))

    if number % 3 == 2:
        slowed(part, stage.chance.uniform(1, 1 + longest))
    else:
        (killed, held_up)[number % 3](part, wait)


def postgres(stage: Stage) -> Outcome:
    """Kill, hold up, slow down and restart PostgreSQL; /readyz says so meanwhile, and all goes on by itself."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    cluster = stage.cluster(stub.url)

    def notice() -> None:
        if not until(lambda: ready(cluster.webs[0]) == 503, RECOVERY_TIMEOUT_SECONDS):
            outcome.wrong.append("/readyz did not say that the database is away")

    def trouble() -> None:
        for number in stage.rounds(1, 20):
            time.sleep(stage.chance.uniform(0.5, 2))
            if number % 4 == 3:
                cluster.postgres.stop()
                cluster.postgres.start()
            else:
                in_trouble(stage, cluster.postgres, number % 4, 5.0, notice)
            wait_until_ready(cluster, outcome)

    beside_clients(cluster, stub, CLIENTS, trouble, outcome)
    return outcome


def proxy(stage: Stage) -> Outcome:
    """Kill the proxy, hold it up and slow it down."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    cluster = stage.cluster(stub.url)

    def trouble() -> None:
        for number in stage.rounds(3, 24):
            time.sleep(stage.chance.uniform(0.2, 1.5))
            in_trouble(stage, cluster.proxy, number, 1.5, lambda: None)
            cluster.wait_for_proxy()

    beside_clients(cluster, stub, CLIENTS, trouble, outcome)
    return outcome


def wait_until_ready(cluster: Cluster, outcome: Outcome) -> None:
    """Return when all webs are ready and the proxy passes requests on."""
    if not until(lambda: all(ready(web) == 200 for web in cluster.webs), RECOVERY_TIMEOUT_SECONDS):
        outcome.wrong.append("not ready again after a minute")
    cluster.wait_for_proxy()


def ready(web: ServerProcess) -> int:
    """Return the status of /readyz, 0 where there is none."""
    try:
        return web.call("GET", "/readyz")[0]
    except OSError:
        return 0
