"""Whether we run in a container, where the command line is not at hand and an address is public by necessity."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SIGNS = (Path("/.dockerenv"), Path("/run/.containerenv"))


def in_container(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this process runs in a container: Docker, Podman and systemd-nspawn say so."""
    return bool(environment.get("container")) or any(sign.exists() for sign in SIGNS)
