"""The figures for Prometheus."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from flask import Flask, Response

from rag_assistant.records.errors import StorageFailed
from rag_assistant.runtime.telemetry.metrics import CONTENT_TYPE, Levels
from rag_assistant.web.health import readiness
from rag_assistant.web.routing import ADMIN

if TYPE_CHECKING:
    from rag_assistant.services import Services

log = logging.getLogger(__name__)


def init_app(app: Flask, services: Services) -> None:
    """Add /metrics."""

    @app.get("/metrics", policy=ADMIN)
    def metrics() -> Response:
        return Response(services.observer.metrics.exposition(levels_of(services)), content_type=CONTENT_TYPE)


def levels_of(services: Services) -> Levels:
    """Return how things stand; while the database is away, without what only that knows."""
    from rag_assistant.storage.usage import documents_by_state

    running, max_running = services.assistant.running
    parts = readiness(services)
    try:
        now, later = services.library.waiting
        serving = services.embeddings.serving()
        return Levels(
            running_answers=running,
            max_running_answers=max_running,
            parts=parts,
            jobs={"now": now, "later": later},
            documents=documents_by_state(services.database),
            indexed_chunks=serving.version[0] - serving.version[1] if serving else 0,
        )
    except StorageFailed as error:
        log.warning("Some figures are missing: %s", error)
        return Levels(running_answers=running, max_running_answers=max_running, parts=parts)
