"""Who is let in: from which addresses, and which users of a provider, with which name and role. Pure."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

from msgspec import Struct

from rag_assistant.records import ExternalIdentity, Role
from rag_assistant.records.errors import NotAllowed
from rag_assistant.records.validation import storable
from rag_assistant.settings.schema import Settings

EVERYBODY = "*"
SIGN_IN_OVER = "This sign-in is over, or was begun in another browser. Begin it again."
# Without a display name, comments, quotes, or a second @.
ADDRESS = re.compile(r"[^\s@<>()\[\]\\,;:\"]{1,64}@[^\s@<>()\[\]\\,;:\"]{1,253}")
MAX_LABEL_CHARS = 200
MAX_SUBJECT_CHARS = 255  # OpenID Connect Core 1.0, section 2.
# Providers let people choose their name, so the least likely to be taken comes first.
NAMES = ("preferred_username", "email", "name")


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache
def is_within(address: str, networks: tuple[str, ...]) -> bool:
    """Return whether an address is in a list of addresses and networks such as ``10.0.0.0/24``."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if parsed.version == 6 and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped  # How a server that listens on :: sees its IPv4 clients.
    return any(parsed in ip_network(network, strict=False) for network in networks)


def is_subject(text: str) -> bool:
    """Return whether a text is a valid subject identifier."""
    return 1 <= len(text) <= MAX_SUBJECT_CHARS and storable(text) == text


class Claims(Struct, frozen=True):
    """What a provider says about a user. An email address counts only if the provider has verified it."""

    external: ExternalIdentity
    names: tuple[str, ...]
    email: str | None
    groups: frozenset[str]


def claims_of(userinfo: Mapping[str, Any], groups_claim: str) -> Claims:
    """Return the claims that are used here."""
    texts = {name: userinfo[name] for name in NAMES if isinstance(userinfo.get(name), str) and userinfo[name].strip()}
    verified = userinfo.get("email_verified") is True and ADDRESS.fullmatch(texts.get("email", "")) is not None
    label = texts.get("email") or next(iter(texts.values()), userinfo["sub"])
    return Claims(
        ExternalIdentity(userinfo["iss"], userinfo["sub"], _visible(label)[:MAX_LABEL_CHARS]),
        tuple(dict.fromkeys(texts.values())) or (userinfo["sub"],),
        texts.get("email") if verified else None,
        _groups(userinfo, groups_claim),
    )


def _groups(userinfo: Mapping[str, Any], claim: str) -> frozenset[str]:
    """Return the groups of a claim, which may be nested, as in ``realm_access.roles``."""
    groups: Any = userinfo
    for part in [claim] if claim in userinfo else claim.split("."):
        groups = groups.get(part) if isinstance(groups, Mapping) else None
    if isinstance(groups, str):
        groups = [groups]
    return frozenset(one for one in groups if isinstance(one, str)) if isinstance(groups, list) else frozenset()


def refuse_uninvited(claims: Claims, settings: Settings, provider: str) -> None:
    """Raise NotAllowed unless the settings admit the user: if they name domains and groups, both must match."""
    domains, groups = settings.oidc_allowed_domains, settings.oidc_allowed_groups
    if domains and EVERYBODY not in domains:
        if claims.email is None:
            raise NotAllowed(f"{provider} gave no verified email address for you, and signing in here requires one.")
        _, at, domain = claims.email.lower().rpartition("@")
        if not at or domain not in {allowed.lower() for allowed in domains}:
            raise NotAllowed(f"Your email address, {claims.email}, is not in an allowed domain.")
    if groups and not claims.groups & set(groups):
        raise NotAllowed(f"None of your groups at {provider} may sign in here.")


def role_by_group(groups: frozenset[str], admin_group: str | None) -> Role | None:
    """Return the role given by groups; ``None`` if groups don't decide it."""
    if admin_group is None:
        return None
    return "admin" if admin_group in groups else "member"


def names_to_try(names: tuple[str, ...], max_chars: int) -> Iterator[str]:
    """Yield names for a new account, best first, then with numbers."""
    usable = [name for name in (_visible(name).strip()[:max_chars].strip() for name in names) if name]
    usable = usable or ["Account"]
    yield from usable
    for number in range(2, 100):
        yield f"{usable[0][: max_chars - 3]} {number}"


def _visible(text: str) -> str:
    return "".join(one for one in text if one.isprintable())
