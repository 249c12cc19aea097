"""A backup in one file: a zip archive with the database, the uploaded files and the settings, without secrets.

Everything else in the data folder can be rebuilt from these. The database in it is always SQLite, so that a backup can
be restored to SQLite or PostgreSQL, and files come from and go to any store.
"""

import hashlib
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj, move
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import delete, select, text, update
from sqlalchemy.exc import DatabaseError

from rag_assistant import __version__
from rag_assistant.files import FileStore
from rag_assistant.files.store import FILE_NAME, FolderFiles
from rag_assistant.records.errors import BackupFailed, StorageDamaged, StorageFailed
from rag_assistant.runtime.data_dir import INSTALLATION_FILE, drop_leftovers, working_folder, written_whole
from rag_assistant.settings.package_files import SETTINGS_EXAMPLE
from rag_assistant.settings.schema import SECRET
from rag_assistant.storage.copying import copy_database, is_empty
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import SCHEMA_REVISION, current_revision, migrate
from rag_assistant.storage.tables import deleted_files, documents
from rag_assistant.storage.usage import usage_of

DATABASE, UPLOADS, SETTINGS, MANIFEST = "assistant.db", "uploads", "settings.json", "backup.json"
MAX_MANIFEST_BYTES = 10_000
MAX_PROBLEMS = 5
REVISION = re.compile(r"\d{4}")
# What a foreign database and a foreign manifest raise.
FOREIGN = (DatabaseError, StorageDamaged, msgspec.MsgspecError)
RESTORED_SETTINGS = "settings.restored.json"
NAMES = re.compile(rf"{DATABASE}|{INSTALLATION_FILE}|{SETTINGS}|{UPLOADS}/{FILE_NAME.pattern}")
# Locations belong to an installation and aren't restored.
LEFT_OUT = SECRET | {"files_url", "s3", "s3_endpoint_url", "s3_region", "s3_path_style", "backup_folder"}

# Called after each file with the bytes written and the total.
Progress = Callable[[int, int], None]
# Turns a text into the words that keyword search indexes.
WordsOf = Callable[[str], str]


class Kept(Struct, frozen=True):
    """What is backed up of an installation, and where it is restored to."""

    database: Database
    files: FileStore
    data_dir: Path
    settings: Path
    words_of: WordsOf


class _Manifest(Struct, frozen=True):
    """The backup's description of itself."""

    version: str
    schema: str
    created_at: str = ""


class Backup(Struct, frozen=True):
    """What a backup contains; ``missing`` counts documents whose file was deleted while it was made."""

    documents: int
    missing: int
    size_bytes: int


def write_backup(data: Kept, target: Path, progress: Progress) -> Backup:
    """Write a backup of the current state, also while the server runs. Raises BackupFailed and then leaves no file."""
    if target.exists():
        raise BackupFailed(f"{target} exists already. Name a file that does not.")
    try:
        with working_folder(data.data_dir, "backup-") as folder, written_whole(target) as file:
            _copy_of(data, folder)
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                are_there = _fill(archive, folder, data, progress)
    except StorageFailed as error:
        raise BackupFailed(f"{error} No backup was written.") from error
    except OSError as error:
        raise BackupFailed(f"{target} cannot be written ({error.strerror}).") from error
    return Backup(len(are_there), are_there.count(False), target.stat().st_size)


def _copy_of(data: Kept, folder: Path) -> None:
    """Copy the database as it is now into a folder, as SQLite."""
    if data.database.is_sqlite:
        data.database.copy_to(folder / DATABASE)
        return
    with closing(Database(sqlite_url(folder))) as copy:
        migrate(copy)
        with data.database.snapshot() as source, copy.write() as target:
            copy_database(source, target, data.words_of)
        copy.checkpoint()


def _fill(archive: zipfile.ZipFile, copied: Path, data: Kept, progress: Progress) -> list[bool]:
    """Write every part into the archive; return for each document whether its file still existed."""
    with closing(Database(sqlite_url(copied))) as database:
        revision = current_revision(database)
        with database.read() as connection:
            rows = connection.execute(select(documents.c.file, documents.c.size_bytes))
            files = {row.file: row.size_bytes for row in rows}
    manifest = _Manifest(__version__, revision or "", datetime.now(UTC).isoformat())
    archive.writestr(MANIFEST, msgspec.json.encode(manifest))
    if (shared := _without_keys(data.settings)) is not None:
        archive.writestr(SETTINGS, shared)
    archive.write(copied / DATABASE, DATABASE)
    done = (copied / DATABASE).stat().st_size
    total = done + sum(files.values())
    there = []
    for name, size in files.items():
        progress(done, total)
        there.append(_add_file(archive, data.files, name))
        done += size
    progress(total, total)
    return there


def _add_file(archive: zipfile.ZipFile, files: FileStore, name: str) -> bool:
    """Write an uploaded file into the archive; return whether it still existed."""
    try:
        stored = files.open(name)
    except FileNotFoundError:
        return False
    with stored, archive.open(f"{UPLOADS}/{name}", "w", force_zip64=True) as packed:
        copyfileobj(stored, packed)
    return True


def _without_keys(settings: Path) -> str | None:
    """Return the settings without secrets; ``None`` if there is no readable file."""
    try:
        values = json.loads(settings.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return None
    return json.dumps({name: value for name, value in values.items() if name not in LEFT_OUT}, indent=2) + "\n"


def restore_backup(source: Path, data: Kept, progress: Progress) -> tuple[str, Path]:
    """Restore a backup into an empty installation; return its date and where its settings are.

    Nothing is moved into place until everything is unpacked, and files before the database that names them: a restore
    that is interrupted there can be repeated. Raises BackupFailed.
    """
    _refuse_to_write_over(data)
    try:
        drop_leftovers(data.data_dir)
        with working_folder(data.data_dir, "restore-") as folder, zipfile.ZipFile(source) as archive:
            with archive.open(MANIFEST) as manifest:
                about = msgspec.json.decode(manifest.read(MAX_MANIFEST_BYTES), type=_Manifest)
            if REVISION.fullmatch(about.schema) and about.schema > SCHEMA_REVISION:
                raise BackupFailed(f"{source} was made by version {about.version}, which is newer. Install that one.")
            _unpack(archive, folder, progress)
            _refuse_foreign(folder, about.schema)
            return about.created_at, _put_in_place(folder, data)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, *FOREIGN) as error:
        raise BackupFailed(f"{source} is not a complete backup. Nothing was restored.") from error
    except StorageFailed as error:
        raise BackupFailed(f"{error} Restore it again.") from error
    except OSError as error:
        raise BackupFailed(f"{source} cannot be restored ({error.strerror}).") from error


def rehearse_restore(source: Path, data_dir: Path, words_of: WordsOf) -> tuple[str, dict[str, Any]]:
    """Restore a backup into a folder that is deleted afterwards; return its date and what it holds.

    Raises BackupFailed if its database or a file is damaged, or a file is missing.
    """
    with working_folder(data_dir, "restore-") as folder, closing(Database(sqlite_url(folder))) as database:
        data = Kept(database, FolderFiles(folder / UPLOADS, ""), folder, folder / SETTINGS, words_of)
        created_at, _ = restore_backup(source, data, lambda *_: None)
        with database.read() as connection:
            problems = [line for line in connection.execute(text("PRAGMA integrity_check")).scalars() if line != "ok"]
            problems += [row[0] for row in connection.execute(text("PRAGMA foreign_key_check"))]
            rows = connection.execute(select(documents.c.name, documents.c.file, documents.c.sha256)).all()
        for name, file, sha256 in rows:
            path = folder / UPLOADS / file
            if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
                problems.append(name)
        if problems:
            raise BackupFailed(f"{source} is not sound: {', '.join(problems[:MAX_PROBLEMS])}.")
        return created_at, usage_of(database)


def _refuse_to_write_over(data: Kept) -> None:
    database, data_dir = data.database, data.data_dir
    if not database.is_sqlite:
        if current_revision(database) is None:
            return
        migrate(database)
        with database.read() as connection:
            if not is_empty(connection):
                raise BackupFailed("The database (database_url) holds data already. Name an empty one.")
    elif database.file.exists():
        raise BackupFailed(f"{data_dir} holds data already. Move it away first, or set DATA_DIR to a new folder.")


def _unpack(archive: zipfile.ZipFile, folder: Path, progress: Progress) -> None:
    """Unpack all files of an archive; a wrong checksum shows at the end of each."""
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
        progress(done, sum(one.file_size for one in members))


def _refuse_foreign(folder: Path, schema: str) -> None:
    """Raise ValueError or one of FOREIGN for a database that isn't ours, or that has triggers or views."""
    with closing(Database(sqlite_url(folder))) as copy:
        with copy.engine.connect() as connection:
            acting = text("SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')")
            if current_revision(copy) != schema or connection.execute(acting).scalar():
                raise ValueError(schema)
        migrate(copy)
        with copy.engine.connect() as connection:
            for table in documents.metadata.sorted_tables:
                connection.execute(select(table).limit(0))


def _put_in_place(folder: Path, data: Kept) -> Path:
    """Move the unpacked files into place, the database last; return where the settings are.

    Existing settings stay: then those of the backup are written beside them, unless they are the same.
    """
    settings, target = data.settings, data.settings
    if (folder / SETTINGS).exists():
        content = (folder / SETTINGS).read_bytes()
        is_same = (_without_keys(settings) or "").encode() == content
        if not is_same and settings.exists() and settings.read_bytes() != SETTINGS_EXAMPLE.read_bytes():
            target = settings.with_name(RESTORED_SETTINGS)
        if not is_same:
            target.write_bytes(content)
    data.files.incoming.mkdir(parents=True, exist_ok=True)
    for path in sorted((folder / UPLOADS).iterdir()):
        data.files.keep(path, path.name)
    with closing(Database(sqlite_url(folder))) as copy:
        with copy.write() as connection:
            connection.execute(update(documents).values(owner=data.files.owner))
            connection.execute(delete(deleted_files))
        copy.checkpoint()
        if not data.database.is_sqlite:
            migrate(data.database)
            with copy.snapshot() as source, data.database.write() as connection:
                copy_database(source, connection, data.words_of)
            return target
    move(folder / DATABASE, data.database.file)
    return target
