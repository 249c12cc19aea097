"""Run a cluster on this machine until Ctrl-C: ``python -m deploy.cluster``."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from deploy.cluster.cluster import Cluster
from deploy.cluster.proxy import ProxyMissing
from tests.testkit.s3_server import BUCKET, S3Missing

FOLDER = Path(__file__).resolve().parents[2] / ".cluster"


def main() -> None:
    """Start everything, say where it is, and end all of it when told to."""
    parser = argparse.ArgumentParser(prog="python -m deploy.cluster", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--port", type=int, default=8080, help="where the proxy listens (default: 8080)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where everything is kept (default: .cluster)")
    parser.add_argument("--proxy", choices=["haproxy", "caddy"], help="default: HAProxy if it is installed")
    options = parser.parse_args()
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    try:
        cluster = Cluster(options.folder.resolve(), {}, port=options.port, proxy=options.proxy)
    except (ProxyMissing, S3Missing) as missing:
        sys.exit(str(missing))
    try:
        cluster.start()
        print(f"The cluster is at {cluster.url} ({cluster.proxy.kind}); Ctrl-C ends it.")
        for server in cluster.servers:
            print(f"  {server.data.parent.name}: {server.url}, log: {server.log}")
        print(f"  PostgreSQL: {cluster.postgres.url}")
        print(f"  S3: {cluster.s3.url}, bucket {BUCKET}", flush=True)
        over.wait()
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
