"""``status``: version, folders, sizes, pending work. ``model test``: the connected model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from rag_assistant import __version__
from rag_assistant.cli.api import Api, api_command
from rag_assistant.cli.commands import ApiError, services_command
from rag_assistant.records.errors import NoEndpoint
from rag_assistant.runtime.data_dir import is_locked, size_of

if TYPE_CHECKING:
    from rag_assistant.services import Services


model = click.Group("model", help="Test the connected language model.")


@api_command("test", model)
def test(api: Api) -> None:
    """Test the configured endpoints: list models, get a word and a vector. A server forgets guessed limits."""
    try:
        check = api.call("POST", "/api/model/test")
    except ApiError as error:
        if api.services is None or error.type != NoEndpoint.__name__:
            raise
        sentences = [error.message]
        for server in api.services.local_servers.find():
            if server.models:
                line = json.dumps(server.settings)
                sentences.append(
                    f"Found on this machine: {server.name} (port {server.port}). For settings.json: {line}"
                )
        raise click.ClickException("\n".join(sentences)) from error
    for step in check["steps"]:
        mark, color = ("ok", "green") if step["ok"] else ("failed", "red")
        click.echo(f"{click.style(mark, fg=color)}: {step['message']} ({step['seconds']:.1f} s)", err=not step["ok"])
    if not check["ok"]:
        raise click.exceptions.Exit(1)


MEGABYTE, GIGABYTE = 1_000_000, 1_000_000_000
PARTS_OF_THE_DATABASE = ("vectors", "full_text")


@services_command("status", start=False)
@click.option("--json", "as_json", is_flag=True, help="For programs: sizes in bytes.")
def status(services: Services, as_json: bool) -> None:
    """Show version, folders, sizes, counts and pending work."""
    current = status_of(services)
    click.echo(json.dumps(current, indent=2) if as_json else "\n".join(lines_of(current)))


def status_of(services: Services) -> dict[str, Any]:
    """Return the current status; with another schema, only what doesn't need the database.

    The sizes of its parts are included in ``database``.
    """
    from rag_assistant.storage.migrate import SCHEMA_REVISION, current_revision, why_refused
    from rag_assistant.storage.usage import usage_of

    endpoint, folder = services.models.known_endpoint(), services.data_dir
    schema = current_revision(services.database)
    problem, is_current = why_refused(schema), schema == SCHEMA_REVISION
    sizes = {}
    if services.database.is_sqlite:
        file = services.database.file
        sizes = {
            "database": size_of(file),
            "database_log": size_of(file.with_name(f"{file.name}-wal")),
            "copies_before_upgrades": sum(map(size_of, services.database.copies)),
        }
    parts = {"original_files": "uploads", "chroma_index": "chroma"}
    sizes |= {part: size_of(folder / name) for part, name in parts.items()}
    facts: dict[str, Any] = {
        "version": __version__,
        "schema": schema,
        "upgrade_pending": not is_current and problem is None,
        "schema_problem": problem,
        "settings_file": str(services.settings.path),
        "data_dir": str(folder),
        "in_use": is_locked(folder),
        "model": None if endpoint.quotes else {"base_url": endpoint.base_url or None, "model": endpoint.model},
        "embedder": services.settings.current.embedder,
        "files": services.uploads.store.address,
        "bytes": sizes,
        "disk": dict(zip(("free", "total"), services.disk.usage(), strict=True)),
        "backup": to_builtins(services.backups.status()),
        "disk_is_low": services.disk.is_low,
    }
    if not is_current:
        return facts
    usage, serving = usage_of(services.database), services.embeddings.serving()
    waiting, scheduled = services.processing.waiting
    return (
        facts
        | usage
        | {
            "bytes": usage["bytes"] | sizes,
            "embedder_serving": serving.key if serving else None,
            "jobs": {"waiting": waiting, "scheduled": scheduled},
        }
    )


def _backup_line(backup: dict[str, Any]) -> str:
    if backup["newest"] is None:
        return "off (backup_folder is not set)" if backup["state"] == "off" else f"{backup['state']}, there is none"
    return f"{backup['state']}, {backup['newest']} is {backup['age_seconds'] / 3600:.1f} hours old"


def lines_of(facts: dict[str, Any]) -> list[str]:
    """Return the status as text."""
    model, answers = facts["model"], "none in the settings or this environment; answers are quotes"
    if model is not None:
        name = model["model"] or "first one listed"
        answers = f"{name} at {model['base_url']}" if model["base_url"] else f"{name}, on this machine"
    upgrade = ", upgraded at the next start" if facts["upgrade_pending"] else ""
    lines = {
        "Version": facts["version"],
        "Schema": facts["schema_problem"] or (facts["schema"] or "none yet") + upgrade,
        "Settings": facts["settings_file"],
        "Data": facts["data_dir"],
        "Files": facts["files"],
        "Server": "running (or a command is processing documents)" if facts["in_use"] else "not running",
        "Model": answers,
        "Embedder": facts["embedder"],
        "Backup": _backup_line(facts["backup"]),
    }
    if "documents" in facts:
        states = ", ".join(f"{count} {state}" for state, count in sorted(facts["documents"].items()))
        lines |= {
            "Conversations": f"{facts['conversations']}, {facts['conversations_in_trash']} more in the trash; "
            f"turns: {facts['turns']}",
            "Documents": states or "none",
            "Jobs": f"{facts['jobs']['waiting']} waiting, {facts['jobs']['scheduled']} scheduled for a retry",
        }
    disk = facts["disk"]
    lines["Disk"] = f"{disk['free'] / GIGABYTE:,.1f} of {disk['total'] / GIGABYTE:,.1f} GB free"
    lines["Disk"] += " (less than 10 %)" if facts["disk_is_low"] else ""
    for name, size in facts["bytes"].items():
        label = "of which " * (name in PARTS_OF_THE_DATABASE) + name.replace("_", " ")
        lines[f"  {label}"] = f"{size / MEGABYTE:,.1f} MB"
    return [f"{name:26}{value}".rstrip() for name, value in lines.items()]
