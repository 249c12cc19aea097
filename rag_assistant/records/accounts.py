"""The plain records of accounts: people, credentials, and who makes a request."""

from datetime import datetime
from typing import Literal, get_args

from msgspec import Struct

Role = Literal["admin", "member"]
ROLES: tuple[Role, ...] = get_args(Role)
# What a request may do: read own data, ask and change conversations, change documents, manage the server.
Ability = Literal["read", "ask", "documents", "admin"]
ABILITIES: tuple[Ability, ...] = get_args(Ability)
ALL_ABILITIES: frozenset[Ability] = frozenset(ABILITIES)
Access = Literal["read", "write"]


class Person(Struct, frozen=True):
    """An account. Without a password, its owner needs an administrator's link to sign in."""

    id: int
    name: str
    role: Role
    created_at: datetime
    has_password: bool = True
    disabled_at: datetime | None = None
    email: str | None = None

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the person may do at most."""
        return ALL_ABILITIES if self.role == "admin" else ALL_ABILITIES - {"admin"}


class Session(Struct, frozen=True):
    """A browser in which somebody is signed in."""

    id: int
    person_id: int
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None
    address: str
    browser: str
    identity_id: int | None = None


class ExternalIdentity(Struct, frozen=True):
    """An account at an identity provider: issuer and subject. ``label`` is for people to read."""

    issuer: str
    subject: str
    label: str


class LinkedIdentity(ExternalIdentity, frozen=True):
    """An external identity linked to a person."""

    id: int
    person_id: int
    created_at: datetime
    used_at: datetime | None


class ApiToken(Struct, frozen=True):
    """A program's credential; ``prefix`` is its beginning, ``scopes`` what it may be used for."""

    id: int
    person_id: int
    name: str
    prefix: str
    scopes: tuple[Ability, ...]
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


class Identity(Struct, frozen=True):
    """Who makes a request, and what it may do.

    Without accounts there is no ``person``, and everything is allowed. If a proxy signs people in (``by_proxy``), there
    is no session.
    """

    person: Person | None
    abilities: frozenset[Ability]
    session: Session | None = None
    token: ApiToken | None = None
    by_proxy: bool = False

    @property
    def may_manage(self) -> bool:
        """Whether they may see and manage settings and accounts."""
        return "admin" in self.abilities


ALONE = Identity(None, ALL_ABILITIES)
NOBODY = Identity(None, frozenset())


class AuditEntry(Struct, frozen=True):
    """Who did what to which account, token or library, and from where."""

    at: datetime
    actor: str
    action: str
    subject: str
    address: str | None


class ConversationLink(Struct, frozen=True):
    """A link for reading a conversation, with or without its sources; with the name of a ``person``, for them alone."""

    id: int
    conversation_id: int
    with_sources: bool
    created_at: datetime
    person: str | None = None


class SharedConversation(Struct, frozen=True):
    """A conversation that somebody else lets a person read, by which link."""

    link: str
    title: str
    owner: str
    updated_at: datetime


class Share(Struct, frozen=True):
    """Somebody's access to a shared item."""

    person: str
    access: Access


class Shared(Struct, frozen=True, kw_only=True):
    """Something with an owner, and what others may do with it."""

    id: int
    name: str
    owner: str | None = None
    everyone: Access | None = None
    shares: tuple[Share, ...] = ()
    mine: bool = False
    writable: bool = False


class LibraryRecord(Shared, frozen=True, kw_only=True):
    """A set of documents."""

    documents: int


class ModelUse(Struct, frozen=True):
    """What the stored answers of one model ("quotes" without one) used for somebody; no name without accounts.

    ``cost`` is in the currency of ``model_prices``, ``None`` without a price; ``stored_bytes`` and ``last_seen``, their
    last request, are the person's.
    """

    name: str | None
    model: str
    questions: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    stored_bytes: int
    last_seen: datetime | None
