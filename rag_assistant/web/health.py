"""Health, readiness, settings and Prometheus metrics: /healthz, /readyz and /metrics are all that a worker serves."""

import logging
from contextlib import suppress
from typing import Literal

from flask import Blueprint, Response, jsonify, make_response, request

from rag_assistant import __version__
from rag_assistant.records.errors import ServedByWebs, StorageFailed
from rag_assistant.records.views import answer_data
from rag_assistant.runtime.data_dir import size_of
from rag_assistant.runtime.telemetry.metrics import CONTENT_TYPE, Levels
from rag_assistant.services import Services
from rag_assistant.settings.schema import SECRET, Settings, is_live
from rag_assistant.storage.usage import documents_by_state, sizes_of
from rag_assistant.web.identity import identity
from rag_assistant.web.request_parsing import flag_asked
from rag_assistant.web.routing import ADMIN, PUBLIC, READ, whole_services
from rag_assistant.web.schemas import ModelTestAnswer

log = logging.getLogger(__name__)

# An unreachable endpoint or bucket is so for every server, and without an index, vectors in memory are searched:
# neither is a reason to send requests elsewhere.
GOOD_IF_ASKED = ("ready", "off")
GOOD = (*GOOD_IF_ASKED, "not_checked", "unreachable")
NOT_NEEDED = ("backup", "keywords", "chroma", "pgvector", "worker")
# The endpoints that a worker serves.
OF_EVERY_ROLE = ("health.healthz", "health.readyz", "health.metrics")


blueprint = Blueprint("health", __name__)


@blueprint.before_app_request
def leave_the_rest_to_webs() -> None:
    if whole_services().role == "worker" and request.endpoint not in OF_EVERY_ROLE:
        raise ServedByWebs


@blueprint.get("/healthz", policy=PUBLIC, answer={"status": Literal["ok"]})
def healthz() -> Response:
    response = jsonify(status="ok")
    response.headers["X-Version"] = __version__
    return response


@blueprint.get("/readyz", policy=PUBLIC, answer="ReadyzAnswer")
def readyz() -> Response:
    services, ask = whole_services(), flag_asked("model")
    if ask:
        services.models.ask_state()
    parts = readiness(services)
    good = GOOD_IF_ASKED if ask else GOOD
    ready = all(state in good for part, state in parts.items() if part not in NOT_NEEDED)
    problems = {
        "settings_problem": services.settings.problem,
        "restart_required": services.settings.restart_required,
    }
    # Settings are only for people who may see them.
    shown = problems if identity().may_manage else {}
    return make_response(jsonify(ready=ready, parts=parts, **shown), 200 if ready else 503)


@blueprint.get("/metrics", policy=ADMIN)
def metrics() -> Response:
    services = whole_services()
    return Response(services.metrics.exposition(levels_of(services)), content_type=CONTENT_TYPE)


@blueprint.get("/api/settings", policy=ADMIN, answer="SettingsAnswer")
def settings() -> Response:
    services = whole_services()
    problems = {"problem": services.settings.problem, "restart_required": services.settings.restart_required}
    values, origins = services.settings.current.model_dump(mode="json"), services.settings.origins
    listed = [  # Of a secret, only whether it is set.
        {"name": name, "origin": origins[name], "live": is_live(name), "description": described.description}
        | ({"set": values[name] is not None} if name in SECRET else {"value": values[name]})
        for name, described in Settings.model_fields.items()
    ]
    return jsonify(settings=listed, **problems)


@blueprint.post("/api/model/test", policy=ADMIN, answer=ModelTestAnswer)
def model_test() -> Response:
    """Test the endpoints in the settings, step by step."""
    return jsonify(answer_data(ModelTestAnswer, whole_services().check_connection()))


@blueprint.get("/api/settings/version", policy=READ, answer={"version": str | int})
def settings_version() -> Response:
    return jsonify(version=whole_services().settings.version)


def readiness(services: Services) -> dict[str, str]:
    """Return the state of each part: ``ready``, ``off`` if unused, or what it is doing.

    The database is ``missing`` if its file is gone or replaced, ``failed`` if it doesn't respond within a second. Every
    ten seconds a write is tried: ``full`` means the disk, ``locked`` by another program.
    Uploaded files are checked every ten seconds: ``ready`` or ``unreachable``. An endpoint is ``not_checked`` until the
    first question; then it is as it was the last time. Keywords are ``indexing`` while the words of a large library are
    read after the start, and while documents are indexed again after an upgrade. The server is ``ending`` during
    shutdown, and the worker ``missing`` while nobody works on documents.
    """
    database, index = services.probe.state(), services.vectors.index
    if database == "ready":
        database = services.write_probe.state()
    keywords = "unknown"
    if database == "ready":
        with suppress(StorageFailed):
            keywords = "indexing" if services.keywords.is_loading() else "ready"
    states = {
        "server": "ending" if services.is_ending else "ready",
        "database": database,
        "files": services.files_probe.state(),
        "model": services.models.state,
        "embedder": "ready" if services.embedders.loaded else "failed" if services.embedders.problem else "starting",
        "keywords": keywords,
        "backup": services.backups.last_status.state,
        "worker": "ready" if services.membership.leases.has_worker else "missing",
        # If PostgreSQL doesn't have pgvector, it is missing.
        "chroma": "off",
        "pgvector": "missing" if index and index.name == "chroma" and index.notice else "off",
    }
    return states | ({index.name: index.state} if index else {})


def levels_of(services: Services) -> Levels:
    """Return the gauges; while the database is unreachable, without those that need it."""
    running, max_running = services.assistant.running
    free, total = services.disk.usage()
    age = services.backups.last_status.age_seconds
    levels: Levels = {
        "running_answers": running,
        "max_running_answers": max_running,
        "part": dict.fromkeys(readiness(services).items(), 1),
        "disk_free_bytes": free,
        "disk_bytes": total,
        **({} if age is None else {"backup_age_seconds": age}),
    }
    try:
        now, later = services.processing.waiting
        serving = services.embeddings.serving()
        return {
            **levels,
            "jobs": {"now": now, "later": later},
            "documents": documents_by_state(services.database),
            "indexed_chunks": serving.version[0] - serving.version[1] if serving else 0,
            "stored_bytes": sizes_of(services.database) | {"index": size_of(services.data_dir / "chroma")},
        }
    except StorageFailed as error:
        log.warning("Some figures are missing: %s", error)
        return levels
