"""The settings file: created once from the example, then read, checked and applied whenever it changes.

It is only written when somebody changes a setting on the page. Servers that share a database keep such changes there.
"""

import hashlib
import hmac
import logging
import os
import secrets
import shutil
import stat
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from rag_assistant.records.errors import SettingsChanged, SettingsError, StorageFailed
from rag_assistant.settings.loading import LoadedSettings, Origin, changed_text, load_settings
from rag_assistant.settings.package_files import SETTINGS_EXAMPLE, SETTINGS_SCHEMA, home
from rag_assistant.settings.schema import SECRET, Settings, is_live

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 1_000_000
POLL_INTERVAL_SECONDS = 1.0
# Stands for the content of an unreadable file.
UNREADABLE = "unreadable"


class SharedValues(Struct, frozen=True):
    """What was changed on the page of servers that share a database, with the number of the change."""

    version: int = 0
    settings: dict[str, Any] = {}


class SharedSettings(Protocol):
    """Where servers keep it."""

    def read(self) -> SharedValues: ...

    def write(self, changed: SharedValues) -> None:
        """Replace the version before. Raises SettingsChanged if it is no longer the last one."""


class LiveSettings:
    """The settings in force, which follow settings.json. A broken file changes nothing and is reported."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self.path = path
        self._environment = dict(environment)
        self._shared: SharedSettings | None = None
        self._from_page = SharedValues()
        content = _read(path)
        self._read_last: tuple[bytes | str | None, int] = content, 0
        # Whether the values in force are of one: where there never was one, what servers share applies all the same.
        self._has_file = content is not None
        self._loaded = self._load(_decoded(content, path.name), {})
        # As last set; what needs a restart is not yet in force.
        self.configured = self._loaded.values
        self._closing = threading.Event()
        self._changing = threading.Lock()
        self._unsettled: str | None = None
        self._key = secrets.token_bytes()
        self._era = secrets.token_hex(4)
        self._changes = 0
        # What is wrong with the file, and which of its changes need a restart.
        self.problem: str | None = None
        self.restart_required: tuple[str, ...] = ()

    @property
    def current(self) -> Settings:
        """The values in force; read them once per question, so that it sees consistent settings."""
        return self._loaded.values

    @property
    def origins(self) -> dict[str, Origin]:
        """Where each value in force came from."""
        return self._loaded.origins

    @property
    def version(self) -> str:
        """A text that changes with any value or problem, and with a restart."""
        return f"{self._era}-{self._changes}"

    def share(self, shared: SharedSettings) -> None:
        """Keep the page's changes there from now on, and follow those of other servers."""
        self._shared = shared

    @property
    def private_files(self) -> list[Path]:
        """The file, if it has a key."""
        has_key = any(self.origins[name] == "file" and getattr(self.current, name) for name in SECRET)
        return [self.path] if has_key else []

    def look(self) -> None:
        """Read the file and what is shared again, and apply them if they have changed and are valid.

        Errors are reported if they persist at the next look: an editor may be saving.
        """
        try:
            last, self._read_last = self._read_last, (UNREADABLE, self._from_page.version)
            if self._shared is not None:
                with suppress(StorageFailed):  # While the database is away, its last values stay.
                    self._from_page = self._shared.read()
            content = _read(self.path)
            self._read_last = content, self._from_page.version
            unsettled, self._unsettled = self._unsettled, None
            if self._read_last == last:
                if unsettled is not None:
                    self._report(unsettled)
                return
            if content is None and self._has_file:
                raise SettingsError(f"{self.path.name} is gone.")
            loaded = self._load(_decoded(content, self.path.name), self._from_page.settings)
        except SettingsError as error:
            problem = f"{error} The last good values stay in force."
            if problem == self._unsettled:
                self._report(problem)
            self._unsettled = problem
        else:
            self._has_file = content is not None
            self._apply(loaded)

    def _load(self, text: str | None, from_page: Mapping[str, Any]) -> LoadedSettings:
        return load_settings(text, self._environment, self.path.name, from_page)

    def stamp(self) -> str:
        """Return a text that identifies what a new look finds: what is shared, or unguessably the file."""
        self.look()
        return str(self._from_page.version) if self._shared is not None else self._stamp_of(_read(self.path))

    def change(self, values: Mapping[str, Any], stamp: str) -> None:
        """Write settings into the file, or what is shared, which keeps all others, and apply them.

        Raises SettingsChanged if it no longer matches the ``stamp``, SettingsError if a value is invalid, or the file
        is broken or not writable; then nothing changes.
        """
        with self._changing:
            content = _read(self.path)
            if self._shared is not None:
                self._change_shared(self._shared, _decoded(content, self.path.name), values, stamp)
                return
            if not hmac.compare_digest(stamp.encode(), self._stamp_of(content).encode()):
                raise SettingsChanged(f"{self.path.name} has changed since this page was opened; nothing was saved.")
            text = changed_text(_decoded(content, self.path.name), values, self.path.name)
            self._load(text, {})
            _replace(self.path, text.encode())
            self.look()

    def _change_shared(self, shared: SharedSettings, text: str | None, values: Mapping[str, Any], stamp: str) -> None:
        before = shared.read()
        if stamp != str(before.version):
            raise SettingsChanged("The settings have changed since this page was opened; nothing was saved.")
        if secret := next((name for name in values if name in SECRET), None):
            raise SettingsError(
                f"{secret} is a secret, and several servers share this database: set {secret.upper()} for each of them."
            )
        changed = SharedValues(before.version + 1, {**before.settings, **values})
        self._load(text, changed.settings)
        shared.write(changed)
        self.look()

    def tried(self, values: Mapping[str, Any]) -> Settings:
        """Return the settings as they would be with some values. Raises SettingsError."""
        text = _decoded(_read(self.path), self.path.name)
        if self._shared is not None:
            return self._load(text, {**self._from_page.settings, **values}).values
        return self._load(changed_text(text, values, self.path.name), {}).values

    def _stamp_of(self, content: bytes | None) -> str:
        return hmac.new(self._key, content or b"", hashlib.sha256).hexdigest()

    def watch(self) -> None:
        """Check the file every second, in a thread, until ``close``."""
        threading.Thread(target=self._watch, name="settings", daemon=True).start()

    def close(self) -> None:
        self._closing.set()

    def _watch(self) -> None:
        while not self._closing.wait(POLL_INTERVAL_SECONDS):
            self.look()

    def _apply(self, loaded: LoadedSettings) -> None:
        """Apply all live values; report those that need a restart."""
        self.configured = loaded.values
        before, after = self.current.model_dump(), loaded.values.model_dump()
        changed = [name for name in after if after[name] != before[name]]
        waiting = tuple(name for name in changed if not is_live(name))
        unchanged = {name: before[name] for name in waiting}
        origins = loaded.origins | {name: self._loaded.origins[name] for name in waiting}
        self._loaded = LoadedSettings(loaded.values.model_copy(update=unchanged), origins)
        if changed or self.problem or waiting != self.restart_required:
            self._changes += 1
        if changed:
            log.info("%s changed: %s", self.path.name, ", ".join(changed))
        if waiting and waiting != self.restart_required:
            log.warning("%s: restart the server to apply %s.", self.path.name, ", ".join(waiting))
        self.problem, self.restart_required = None, waiting

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._changes += 1
            log.warning("%s", problem)


def settings_path(environment: Mapping[str, str]) -> Path:
    """Return the file named by SETTINGS_FILE, or settings.json in the home folder."""
    return home() / (environment.get("SETTINGS_FILE") or "settings.json")


def open_settings(environment: Mapping[str, str] | None = None) -> LiveSettings:
    """Return the live settings of settings.json or SETTINGS_FILE; without a file, the defaults."""
    environment = os.environ if environment is None else environment
    return LiveSettings(settings_path(environment), environment)


def _read(path: Path) -> bytes | None:
    """Return the file's bytes, slightly more than allowed if it is too large, ``None`` if there is no file."""
    try:
        # Opening a pipe would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - see above
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SettingsError(f"{path.name} is not a file.")
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path.name} cannot be read: {error.strerror}.") from error
    return content


def _decoded(content: bytes | None, file_name: str) -> str | None:
    if content is None:
        return None
    if len(content) > MAX_FILE_BYTES:
        raise SettingsError(f"{file_name} is larger than {MAX_FILE_BYTES} bytes; it must be smaller.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{file_name} line {line}: this is not UTF-8 text.") from error


def provide_settings_file(environment: Mapping[str, str] | None = None) -> None:
    """Create settings.json and its schema if they don't exist.

    A file named by SETTINGS_FILE isn't created: a misspelt name should be noticed. A read-only folder is only logged.
    """
    environment = os.environ if environment is None else environment
    path = settings_path(environment)
    if environment.get("SETTINGS_FILE"):
        if not os.access(path, os.F_OK):
            log.warning("There is no %s; all settings have their defaults.", path)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # Only its owner may read it, since it will hold keys.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(SETTINGS_EXAMPLE.read_bytes())
            log.info("Created %s; settings it does not name have their defaults.", path)
        schema, content = path.with_name(SETTINGS_SCHEMA.name), SETTINGS_SCHEMA.read_bytes()
        if not schema.exists() or schema.read_bytes() != content:  # That of an older version.
            schema.write_bytes(content)
    except OSError as error:
        log.warning("%s or its schema cannot be created (%s); continuing without.", path, error.strerror)


def _replace(path: Path, content: bytes) -> None:
    """Atomically replace the content of a file, or of a link's target. Raises SettingsError."""
    path = path.resolve()
    written = ""
    try:
        descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # Readable only by its owner.
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, written)
        Path(written).replace(path)
    except OSError as error:
        if written:
            Path(written).unlink(missing_ok=True)
        raise SettingsError(f"{path.name} cannot be written: {error.strerror}. Nothing was saved.") from error
