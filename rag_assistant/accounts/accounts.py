"""Accounts: signing in, credentials and administration. Everything is recorded in the audit log.

Whoever can read the log may create the first one without a command line, once.
"""

import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from rag_assistant.accounts.admission import is_loopback
from rag_assistant.accounts.passwords import Throttle, check_password, hash_password, is_password
from rag_assistant.records import ABILITIES, ApiToken, ExternalIdentity, Identity, Person, Role, errors
from rag_assistant.records.validation import storable
from rag_assistant.settings.people import EMAIL
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.credentials import CredentialStore
from rag_assistant.storage.accounts.people import AuditLog, PeopleStore, name_key

log = logging.getLogger(__name__)

SESSION_LIFETIME = timedelta(days=30)
LINK_LIFETIME = timedelta(days=2)
MAX_NAME_CHARS = 64
MAX_BROWSER_CHARS = 200
MAX_TOKEN_DAYS = 3650
TOKEN_START = "rag_"  # noqa: S105 - how each begins, so that scanners know it
PREFIX_CHARS = 10
# How often to look for a first account made elsewhere; afterwards never.
LOOK_INTERVAL_SECONDS = 1.0
COMMAND_LINE = "command line"
MAKE_ONE = "rag-assistant accounts add NAME --admin"
CODE_BYTES = 9
CONTAINER_SIGNS = (Path("/.dockerenv"), Path("/run/.containerenv"))


class Actor(Struct, frozen=True):
    """Who acts on an account, for the audit log."""

    name: str
    address: str | None = None


class Accounts:
    """Signs people in, and manages their accounts."""

    def __init__(
        self,
        people: PeopleStore,
        credentials: CredentialStore,
        audit: AuditLog,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.people = people
        self.credentials = credentials
        self.log = audit
        self._throttle = Throttle(clock)
        self._clock = clock
        self._any = False
        self._looked_at: float | None = None

    def any(self) -> bool:
        """Return whether there are accounts; one created by another process is seen within a second."""
        moment = self._clock()
        if not self._any and (self._looked_at is None or moment - self._looked_at >= LOOK_INTERVAL_SECONDS):
            self._any, self._looked_at = self.people.any(), moment
        return self._any

    # --- signing in

    def sign_in(self, name: str, password: str, address: str, browser: str) -> tuple[str, Person]:
        """Return the secret of a new session, and the person. Raises SignInFailed, TooManyAttempts."""
        person, password_hash = self.people.password_of(name) or (None, None)
        known_address = person is not None and self.credentials.knows_address(person.id, address)
        self._throttle.attempt(name_key(name), address, known_address=known_address)
        if not is_password(password_hash, password) or person is None:
            raise errors.SignInFailed
        self._throttle.succeeded(name_key(name), address, known_address=known_address)
        return self.start_session(person, address, browser), person

    def start_session(self, person: Person, address: str, browser: str, identity_id: int | None = None) -> str:
        """Return the secret of a new session for an authenticated person."""
        secret = secrets.token_urlsafe(32)
        values = {"address": address, "browser": browser[:MAX_BROWSER_CHARS], "identity_id": identity_id}
        self.credentials.start_session(person.id, secret, SESSION_LIFETIME, **values)
        return secret

    def count_attempt(self, what: str, address: str) -> None:
        """Count an attempt at another secret, such as the setup code. Raises TooManyAttempts."""
        self._throttle.attempt(f"{what}\0", address, known_address=False)

    def by_session(self, secret: str) -> Identity | None:
        """Return the identity of a session, ``None`` if it has expired."""
        session = self.credentials.session(secret)
        return None if session is None else Identity(session[0], session[0].abilities, session=session[1])

    def by_token(self, secret: str) -> Identity:
        """Return a token's identity, with the scopes that its person still has. Raises NotSignedIn."""
        used = self.credentials.token(secret) if secret.startswith(TOKEN_START) else None
        if used is None:
            raise errors.NotSignedIn("This API token has expired, was revoked, or never existed.")
        person, token = used
        return Identity(person, person.abilities & frozenset(token.scopes), token=token)

    def is_open(self, identity: Identity) -> bool:
        """Return whether an identity is still valid."""
        if identity.person is None:
            return True
        if identity.by_proxy:
            return self.people.is_welcome(identity.person.id)
        session_id = identity.session.id if identity.session else None
        return self.credentials.is_open(session_id, identity.token.id if identity.token else None)

    # --- one's own account

    def sign_out(self, identity: Identity) -> None:
        if identity.person is not None and identity.session is not None:
            self.credentials.end_session(identity.person.id, identity.session.id)

    def end_session(self, person: Person, session_id: int, actor: Actor) -> None:
        self.credentials.end_session(person.id, session_id)
        self.note(actor, "ended a session", person.name)

    def end_other_sessions(self, identity: Identity, actor: Actor) -> None:
        """End every other session of the person."""
        if identity.person is not None and identity.session is not None:
            self.credentials.end_sessions(identity.person.id, but=identity.session.id)
            self.note(actor, "ended all other sessions", identity.person.name)

    def change_password(self, identity: Identity, old: str, new: str, actor: Actor) -> None:
        """Change one's own password and end all other sessions. Raises SignInFailed, InvalidRequest."""
        person, session = identity.person, identity.session
        if person is None or session is None:
            raise errors.NotAllowed("Sign in to change your password.")
        self._throttle.attempt(name_key(person.name), actor.address or "", known_address=True)
        account = self.people.password_of(person.name)
        if account is None or not is_password(account[1], old):
            raise errors.SignInFailed("The current password is wrong.")
        self._throttle.succeeded(name_key(person.name), actor.address or "", known_address=True)
        check_password(new, person.name)
        self.people.set_password(person.id, hash_password(new), keep_session=session.id)
        self.note(actor, "changed the password", person.name)

    def make_token(
        self, person: Person, name: str, scopes: Sequence[str], days: int | None, actor: Actor
    ) -> tuple[str, ApiToken]:
        """Create an API token, and return its secret, which is shown only once. Raises InvalidRequest, NotAllowed."""
        if not scopes or not set(scopes) <= set(ABILITIES):
            raise errors.InvalidRequest(
                f'scopes are "{", ".join(scopes)}"; they must be one or more of {", ".join(ABILITIES)}.'
            )
        chosen = [ability for ability in ABILITIES if ability in scopes]
        if not set(chosen) <= person.abilities:
            raise errors.NotAllowed('Only an administrator can create a token with the scope "admin".')
        if days is not None and not 1 <= days <= MAX_TOKEN_DAYS:
            raise errors.InvalidRequest(
                f"The token's lifetime is {days} days; it must be 1 to {MAX_TOKEN_DAYS}, or no limit."
            )
        secret = TOKEN_START + secrets.token_urlsafe(32)
        until = None if days is None else datetime.now(UTC) + timedelta(days=days)
        values = {"prefix": secret[:PREFIX_CHARS], "name": checked_name(name, "token"), "scopes": chosen}
        token = self.credentials.add_token(secret, person_id=person.id, expires_at=until, **values)
        self.note(actor, f"made a token ({', '.join(chosen)})", f"{person.name}: {token.name}")
        return secret, token

    def revoke_token(self, person: Person, token_id: int, actor: Actor) -> None:
        """Revoke an API token. Raises CredentialNotFound."""
        gone = self.credentials.revoke_token(person.id, token_id)
        self.note(actor, "revoked a token", f"{person.name}: {gone.name}")

    # --- administration

    def add(
        self,
        name: str,
        role: Role,
        actor: Actor,
        password: str | None = None,
        *,
        only_first: bool = False,
        known_by: ExternalIdentity | None = None,
    ) -> Person:
        """Create an account, also for a person ``known_by`` an external identity.

        The first one is an administrator and gets all existing data. Raises InvalidRequest, NameTaken, AccountsExist.
        """
        name = checked_name(name, "account")
        if password is not None:
            check_password(password, name)
        password_hash = None if password is None else hash_password(password)
        person = self.people.add(name, role, password_hash, only_first=only_first, known_by=known_by)
        self._any = True
        self.note(actor, f"created an account ({person.role})", person.name)
        return person

    def set_email(self, person: Person, email: str, actor: Actor) -> None:
        """Set the address for password links. Raises InvalidRequest."""
        if not re.fullmatch(EMAIL, email):
            raise errors.InvalidRequest(f'"{email[:MAX_NAME_CHARS]}" is not an email address.')
        if email != person.email:
            self.people.change(person.id, {"email": email})
            self.note(actor, "changed the email address", person.name)

    def make_link(self, person: Person, actor: Actor) -> str:
        """Return the secret of a link for choosing a password, usable once within two days."""
        secret = secrets.token_urlsafe(32)
        self.credentials.make_link(person.id, secret, LINK_LIFETIME)
        self.note(actor, "created a password link", person.name)
        return secret

    def use_link(self, secret: str, password: str, address: str, browser: str) -> str:
        """Set the password chosen through a link; return the secret of a new session. Raises LinkOver."""
        check_password(password, self.credentials.link(secret).name)
        person = self.credentials.use_link(secret, hash_password(password))
        self.log.note(person.name, "set a password through a link", person.name, address)
        return self.start_session(person, address, browser)

    def set_role(self, person: Person, role: Role, actor: Actor) -> None:
        """Set a person's role. Raises LastAdmin."""
        self.people.change(person.id, {"role": role})
        self.note(actor, f"changed the role to {role}", person.name)

    def set_disabled(self, person: Person, disabled: bool, actor: Actor) -> None:
        """Disable or enable an account; its data stays. Raises LastAdmin."""
        self.people.change(person.id, {"disabled_at": datetime.now(UTC) if disabled else None})
        self.note(actor, "disabled" if disabled else "enabled", person.name)

    def delete(
        self,
        person: Person,
        actor: Actor,
        give_to: Person | None,
        erase: Callable[[Sequence[int], Sequence[int]], None],
    ) -> None:
        """Delete an account; its data goes to somebody else, or is erased with ``erase``. Raises LastAdmin."""
        self.people.change(person.id, {"disabled_at": datetime.now(UTC)})
        if give_to is not None:
            self.people.hand_over(person.id, give_to.id)
        else:
            try:
                erase(*self.people.owned(person.id))
            except errors.AssistantError as error:
                self.note(actor, f"disabled, and not yet deleted: {error}", person.name)
                raise
        self.people.delete(person.id)
        done = f"deleted, everything went to {give_to.name}" if give_to else "deleted with everything"
        self.note(actor, done, person.name)

    def note(self, actor: Actor, action: str, subject: str) -> None:
        """Write an entry to the audit log."""
        self.log.note(actor.name, action, subject, actor.address)


def checked_name(name: str, of_what: str) -> str:
    """Return a name without surrounding blanks. Raises InvalidRequest."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable() or storable(name) != name:
        raise errors.InvalidRequest(
            f'The name of the {of_what} is "{name[:MAX_NAME_CHARS]}"; it must have 1 to {MAX_NAME_CHARS} visible '
            "characters."
        )
    return name


def in_container() -> bool:
    """Return whether this process runs in a container: Docker, Podman and systemd-nspawn say so."""
    named = os.environ.get("container")  # noqa: SIM112 - so they spell it
    return bool(named) or any(sign.exists() for sign in CONTAINER_SIGNS)


class Setup:
    """Holds the code for creating the first account in a browser."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._code: str | None = None

    def prepare(self, settings: Settings) -> None:
        """Without an account, refuse settings that admit others; in a container, log a code. Raises SettingsError."""
        named = [name for name in ("oidc_issuer", "proxy_user_header") if getattr(settings, name) is not None]
        if (is_loopback(settings.host) and not named) or self._accounts.any():
            return
        others = (
            f"{named[0]} is set, so that others sign in"
            if named
            else f"host is {settings.host}, which others can reach"
        )
        if not in_container():
            raise errors.SettingsError(f"{others}, and there is no account yet. Create one first: {MAKE_ONE}.")
        self._code = secrets.token_urlsafe(CODE_BYTES)
        log.warning("There is no account yet. Open /setup and make the first one with this code: %s", self._code)

    @property
    def is_open(self) -> bool:
        """Whether the first account can still be created with the code."""
        return self._code is not None and not self._accounts.any()

    def make_first(self, code: str, name: str, password: str, address: str) -> None:
        """Create the first account. Raises SignInFailed, TooManyAttempts, InvalidRequest, AccountsExist."""
        self._accounts.count_attempt("setup", address)
        if self._code is None or not secrets.compare_digest(code.strip().encode(), self._code.encode()):
            raise errors.SignInFailed("The code is wrong. It is in the server log.")
        self._accounts.add(name, "admin", Actor(name.strip(), address), password, only_first=True)
        self._code = None
