"""Run faults by name, or all of them, and print what was tried, lost and doubled. The exit code is 1 if anything was.

``python -m tests.torture [NAME ...] [--cluster] [--short] [--seed N]``
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.testkit.server_fork import ServerFork
from tests.torture import (
    clients,
    cluster,
    copies,
    disk,
    endpoint,
    engines,
    floods,
    imports,
    kills,
    one_against_all,
    settings_file,
    soak,
)
from tests.torture.stage import Outcome, Skipped, Stage

FAULTS: dict[str, Callable[[Stage], Outcome]] = {
    "kill": kills.at_random,
    "kill-turn": kills.steps_of_a_turn,
    "kill-ingest": kills.steps_of_an_ingest,
    "gone": clients.gone,
    "resume": clients.resume,
    "retries": clients.retries,
    "tabs": clients.tabs,
    "crowd": clients.crowd,
    "endpoint": endpoint.lies,
    "disk-full": disk.full,
    "disk-fails": disk.failing,
    "settings": settings_file.saved_and_broken,
    "half-requests": floods.half_requests,
    "attacks": floods.attacks,
    "passwords": floods.passwords,
    "streams": floods.streams,
    "one-against-all": one_against_all.one_against_all,
    "imports": imports.imports,
    "chroma": engines.chroma,
    "starts": engines.starts,
    "backup": copies.backups,
    "upgrade": copies.upgrades,
    "clock": soak.clock,
    "soak": soak.soak,
    **cluster.FAULTS,
}
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 2_000_000_000


def main() -> None:
    """Run what was asked for."""
    options = parsed()
    print(f"seed {options.seed}\n\n| fault | tried | lost | doubled | wrong | minutes |\n|---|---|---|---|---|---|")
    failed = False
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED
    with tempfile.TemporaryDirectory(dir=MEMORY if roomy else None) as folder:
        fork = ServerFork(Path(folder))
        try:
            for name in options.names or (cluster.FAULTS if options.cluster else FAULTS):
                own = Path(folder, name)
                own.mkdir()
                failed |= not run(name, Stage(fork, own, options.seed, "short" if options.short else "full"))
                shutil.rmtree(own)
        finally:
            fork.close()
    sys.exit(failed)


def parsed() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *FAULTS], help=", ".join(FAULTS))
    parser.add_argument("--cluster", action="store_true", help="those alone that break a cluster")
    parser.add_argument("--short", action="store_true", help="a few of each")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="repeat a run")
    return parser.parse_args()


def run(name: str, stage: Stage) -> bool:
    """Run one fault, print its row, and return whether everything was as it must be."""
    began = time.monotonic()
    try:
        with stage:
            outcome = FAULTS[name](stage)
    except Skipped as missing:
        print(f"| {name} | 0 | | | {missing} | |", flush=True)
        return True
    minutes = (time.monotonic() - began) / 60
    figures = (outcome.tried, len(outcome.lost), len(outcome.doubled), len(outcome.wrong))
    print(f"| {name} | {' | '.join(f'{one:,}' for one in figures)} | {minutes:.1f} |", flush=True)
    if outcome.note or not outcome.good:
        print("\n".join(filter(None, (outcome.note, outcome.told()))), file=sys.stderr, flush=True)
    return outcome.good


if __name__ == "__main__":
    main()
