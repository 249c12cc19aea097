"""``status``: which version works on which data, how much there is, and what waits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from rag_assistant import __version__
from rag_assistant.cli.commands import with_services
from rag_assistant.runtime.data_dir import QUEUE_FILE, is_locked, size_of

if TYPE_CHECKING:
    from rag_assistant.services import Services

MEGABYTE = 1_000_000
PARTS_OF_THE_DATABASE = ("vectors", "full_text")


@click.command
@click.option("--json", "as_json", is_flag=True, help="For programs: sizes in bytes.")
@with_services(start=False)
def status(services: Services, as_json: bool) -> None:
    """Show version, folders, sizes, counts and pending work."""
    current = status_of(services)
    click.echo(json.dumps(current, indent=2) if as_json else "\n".join(lines_of(current)))


def status_of(services: Services) -> dict[str, Any]:
    """Return what is so now. What needs the present schema is left out while an upgrade is pending."""
    from rag_assistant.storage.migrate import SCHEMA_REVISION, current_revision

    settings = services.settings.current
    endpoint = services.models.known_endpoint()
    schema = current_revision(services.database)
    found: dict[str, Any] = {
        "version": __version__,
        "schema": schema,
        "upgrade_pending": schema != SCHEMA_REVISION,
        "settings_file": str(services.settings.path),
        "data_dir": str(services.data_dir),
        "in_use": is_locked(services.data_dir),
        "model": None if endpoint.quotes else {"base_url": endpoint.base_url or None, "model": endpoint.model},
        "embedder": settings.embedder,
        "files": services.uploads.store.address,
        "bytes": file_sizes(services),
    }
    return found if found["upgrade_pending"] else found | stored(services, found["bytes"])


def file_sizes(services: Services) -> dict[str, int]:
    """Return the sizes of what lies in the data folder."""
    folder, sizes = services.data_dir, {}
    if services.database.is_sqlite:
        file = services.database.file
        sizes = {
            "database": size_of(file),
            "database_log": size_of(file.with_name(f"{file.name}-wal")),
            "copies_before_upgrades": sum(size_of(copy) for copy in services.database.copies),
        }
    return sizes | {
        "original_files": size_of(folder / "uploads"),
        "chroma_index": size_of(folder / "chroma"),
        "job_queue": size_of(folder / QUEUE_FILE),
        "models": size_of(folder / "models"),
    }


def stored(services: Services, sizes: dict[str, int]) -> dict[str, Any]:
    """Return what the database knows; the sizes of its parts lie within ``database``."""
    from rag_assistant.storage.usage import usage_of

    usage = usage_of(services.database)
    waiting, scheduled = services.library.waiting
    serving = services.embeddings.serving()
    parts = {"database": usage.database_bytes, "vectors": usage.vectors_bytes, "full_text": usage.full_text_bytes}
    return {
        "bytes": parts | sizes,
        "embedder_serving": serving.key if serving else None,
        "conversations": usage.conversations,
        "conversations_in_trash": usage.in_trash,
        "turns": usage.turns,
        "documents": usage.documents,
        "documents_to_index": services.documents.waiting_to_be_indexed(),
        "jobs": {"waiting": waiting, "scheduled": scheduled},
    }


def lines_of(found: dict[str, Any]) -> list[str]:
    """Return the status as a person reads it."""
    lines = {
        "Version": found["version"],
        "Schema": f"{found['schema'] or 'none yet'}{', upgraded at the next start' * found['upgrade_pending']}",
        "Settings": found["settings_file"],
        "Data": found["data_dir"],
        "Files": found["files"],
        "Server": "running (or a command is processing documents)" if found["in_use"] else "not running",
        "Model": model_line(found["model"]),
        "Embedder": found["embedder"],
    }
    if "documents" in found:
        states = ", ".join(f"{count} {state}" for state, count in sorted(found["documents"].items()))
        if found["documents_to_index"]:
            states += f"; {found['documents_to_index']} still to be indexed by keyword after the upgrade"
        lines |= {
            "Conversations": f"{found['conversations']}, {found['conversations_in_trash']} more in the trash; "
            f"turns: {found['turns']}",
            "Documents": states or "none",
            "Jobs": f"{found['jobs']['waiting']} waiting, {found['jobs']['scheduled']} scheduled for a retry",
        }
    lines["Disk"] = ""
    for name, size in found["bytes"].items():
        label = "of which " * (name in PARTS_OF_THE_DATABASE) + name.replace("_", " ")
        lines[f"  {label}"] = f"{size / MEGABYTE:,.1f} MB"
    return [f"{name:26}{value}".rstrip() for name, value in lines.items()]


def model_line(model: dict[str, str | None] | None) -> str:
    """Return who answers: an endpoint, a file on this machine, or nobody."""
    if model is None:
        return "none connected; answers are quotes"
    name = model["model"] or "first one listed"
    return f"{name} at {model['base_url']}" if model["base_url"] else f"{name}, on this machine"
