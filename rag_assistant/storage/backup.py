"""A backup in one file: a zip archive with the database, the uploaded files and the settings, without keys.

Everything else in the data folder is made again from these.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj, move
from typing import IO

from sqlalchemy import select

from rag_assistant import __version__
from rag_assistant.errors import BackupFailed
from rag_assistant.runtime.data_dir import INSTALLATION_FILE, size_of
from rag_assistant.settings.package_files import SETTINGS_EXAMPLE
from rag_assistant.settings.schema import SECRET
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import SCHEMA_REVISION, current_revision
from rag_assistant.storage.tables import documents

DATABASE, UPLOADS, SETTINGS, MANIFEST = "assistant.db", "uploads", "settings.json", "backup.json"
RESTORED_SETTINGS = "settings.restored.json"
NAMES = re.compile(rf"{DATABASE}|{INSTALLATION_FILE}|{SETTINGS}|{UPLOADS}/[0-9a-f]{{32}}")

# Told after each file: how many bytes were written, and of how many.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Backup:
    """What is in a backup; ``missing`` counts documents whose file was deleted while it was made."""

    documents: int
    missing: int
    size_bytes: int


def write_backup(database: Database, data_dir: Path, settings: Path, target: Path, told: Progress) -> Backup:
    """Write a backup of the present state, whoever works with it meanwhile. Raises BackupFailed; then none is left."""
    if not database.is_sqlite:
        raise BackupFailed(f"The database is PostgreSQL: back it up with pg_dump, and copy the folder {data_dir}.")
    if target.exists():
        raise BackupFailed(f"{target} exists already. Name a file that does not.")
    part = target.with_name(f"{target.name}.part")
    try:
        with tempfile.TemporaryDirectory(prefix="backup-", dir=data_dir) as folder:
            database.copy_to(Path(folder) / DATABASE)
            with _private(part) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                found = _fill(archive, Path(folder), data_dir, settings, told)
        part.replace(target)
    except OSError as error:
        raise BackupFailed(f"{target} cannot be written ({error.strerror}).") from error
    finally:
        part.unlink(missing_ok=True)
    return Backup(len(found), found.count(False), target.stat().st_size)


@contextmanager
def _private(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that nobody else may read, and have it on the disk at the end."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _fill(archive: zipfile.ZipFile, copied: Path, data_dir: Path, settings: Path, told: Progress) -> list[bool]:
    """Write every part into the archive; tell for each document whether its file was still there."""
    with closing(Database(sqlite_url(copied))) as database:
        revision = current_revision(database)
        with database.read() as connection:
            files = list(connection.scalars(select(documents.c.file)))
    made = {"version": __version__, "schema": revision, "created_at": datetime.now(UTC).isoformat()}
    archive.writestr(MANIFEST, json.dumps(made))
    archive.write(data_dir / INSTALLATION_FILE, INSTALLATION_FILE)
    if (shared := _without_keys(settings)) is not None:
        archive.writestr(SETTINGS, shared)
    sources = {DATABASE: copied / DATABASE} | {f"{UPLOADS}/{name}": data_dir / UPLOADS / name for name in files}
    sizes = {name: size_of(path) for name, path in sources.items()}
    done = 0
    there = []
    for name, path in sources.items():
        try:
            archive.write(path, name)
        except FileNotFoundError:
            there.append(False)
            continue
        there.append(True)
        done += sizes[name]
        told(done, sum(sizes.values()))
    return there[1:]


def _without_keys(settings: Path) -> str | None:
    """Return the settings without secrets; ``None`` if there is no file, or one that cannot be read."""
    try:
        values = json.loads(settings.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return None
    return json.dumps({name: value for name, value in values.items() if name not in SECRET}, indent=2) + "\n"


def restore_backup(source: Path, database: Database, data_dir: Path, settings: Path, told: Progress) -> dict[str, str]:
    """Put a backup into a data folder without a database; return what it says of itself, and where its settings are.

    Nothing is in place before all of it is whole. Raises BackupFailed.
    """
    if not database.is_sqlite:
        raise BackupFailed("database_url names PostgreSQL; a backup is restored into a data folder with SQLite only.")
    if database.file.exists() or (data_dir / UPLOADS).exists():
        raise BackupFailed(f"{data_dir} holds data already. Move it away first, or set DATA_DIR to a new folder.")
    try:
        with tempfile.TemporaryDirectory(prefix="restore-", dir=data_dir) as name, zipfile.ZipFile(source) as archive:
            made: dict[str, str] = json.loads(archive.read(MANIFEST))
            if made["schema"] > SCHEMA_REVISION:
                raise BackupFailed(f"{source} was made by version {made['version']}, which is newer. Install that one.")
            _unpack(archive, Path(name), told)
            return made | {"settings": str(_put_in_place(Path(name), data_dir, database.file, settings))}
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError) as error:
        raise BackupFailed(f"{source} is not a complete backup. Nothing was restored.") from error
    except OSError as error:
        raise BackupFailed(f"{source} cannot be restored ({error.strerror}).") from error


def _unpack(archive: zipfile.ZipFile, folder: Path, told: Progress) -> None:
    """Write every file of an archive; its end is where a wrong checksum shows."""
    (folder / UPLOADS).mkdir()
    members = [one for one in archive.infolist() if one.filename != MANIFEST]
    done = 0
    for one in members:
        if not NAMES.fullmatch(one.filename):
            raise KeyError(one.filename)
        with archive.open(one) as packed, (folder / one.filename).open("xb") as file:
            copyfileobj(packed, file)
            os.fsync(file.fileno())
        done += one.file_size
        told(done, sum(one.file_size for one in members))


def _put_in_place(folder: Path, data_dir: Path, database_file: Path, settings: Path) -> Path:
    """Move what was unpacked to where it belongs, the database last; return where its settings are.

    Settings that a person has changed stay: then those of the backup lie beside them.
    """
    changed = settings.exists() and settings.read_bytes() != SETTINGS_EXAMPLE.read_bytes()
    target = settings.with_name(RESTORED_SETTINGS) if changed else settings
    if (folder / SETTINGS).exists():
        target.write_bytes((folder / SETTINGS).read_bytes())
    for name in (INSTALLATION_FILE, UPLOADS):
        (folder / name).rename(data_dir / name)
    move(folder / DATABASE, database_file)
    return target
