"""The plain records of people: their accounts, what they are known by, and who asks in one request."""

from datetime import datetime
from typing import Literal, get_args

from msgspec import Struct

Role = Literal["admin", "member"]
ROLES: tuple[Role, ...] = get_args(Role)
# What a request may do: read what is theirs, ask and change conversations, change documents, manage the server.
Ability = Literal["read", "ask", "documents", "admin"]
ABILITIES: tuple[Ability, ...] = get_args(Ability)
ALL_ABILITIES: frozenset[Ability] = frozenset(ABILITIES)
Access = Literal["read", "write"]


class Person(Struct, frozen=True):
    """Somebody with an account. Without a password, only a link of an administrator lets them in."""

    id: int
    name: str
    role: Role
    created_at: datetime
    has_password: bool = True
    disabled_at: datetime | None = None

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
    """An account elsewhere: whose word it is, and who that says it is. ``label`` is for people to read."""

    issuer: str
    subject: str
    label: str


class LinkedIdentity(Struct, frozen=True):
    """An account elsewhere by which a person is known."""

    id: int
    person_id: int
    issuer: str
    subject: str
    label: str
    created_at: datetime
    used_at: datetime | None


class ApiToken(Struct, frozen=True):
    """What a program shows instead of a password; ``prefix`` is how it begins, ``scopes`` what it may be used for."""

    id: int
    person_id: int
    name: str
    prefix: str
    scopes: tuple[Ability, ...]
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


class Identity(Struct, frozen=True):
    """Who asks in one request, and what that request may do.

    Without accounts everybody is alone with everything: no ``person``, and every ability. Where a proxy says who it is
    (``by_proxy``), there is no session.
    """

    person: Person | None
    abilities: frozenset[Ability]
    session: Session | None = None
    token: ApiToken | None = None
    by_proxy: bool = False

    @property
    def may_manage(self) -> bool:
        """Whether settings and accounts are theirs to see."""
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
    """A link with which a conversation is read, with its sources or without."""

    id: int
    conversation_id: int
    with_sources: bool
    created_at: datetime


class Share(Struct, frozen=True):
    """What somebody else may do with it."""

    person: str
    access: Access


class Shared(Struct, frozen=True, kw_only=True):
    """What belongs to somebody, and what others may do with it."""

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
