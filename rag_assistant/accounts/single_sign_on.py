"""Signing in through an OpenID Connect provider or a trusted proxy."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rag_assistant.accounts import admission
from rag_assistant.accounts.accounts import MAX_NAME_CHARS, Accounts, Actor
from rag_assistant.records import ExternalIdentity, LinkedIdentity, Person, Role
from rag_assistant.records.errors import AccountNotFound, InvalidRequest, LastAdmin, NameTaken, NotAllowed
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.credentials import LinkedIdentityStore

if TYPE_CHECKING:
    from rag_assistant.accounts.oidc import OpenIdProvider

log = logging.getLogger(__name__)

DISABLED = "This account is disabled. Ask an administrator."


class SingleSignOn(Struct, frozen=True):
    """Maps external identities to people. ``provider`` is ``None`` if there is none."""

    accounts: Accounts
    identities: LinkedIdentityStore
    settings: Settings
    provider: OpenIdProvider | None

    # --- a provider

    def sign_in(self, userinfo: Mapping[str, Any], address: str, browser: str) -> tuple[str, Person]:
        """Return the secret of a new session for a provider's user, and the person. Raises NotAllowed."""
        claims = self._admitted(userinfo)
        actor = Actor(self._label, address)
        person, identity = self.identities.find(claims.external) or self._make(claims, actor)
        if person.disabled_at is not None:
            raise NotAllowed(DISABLED)
        self._give_role(person, admission.role_by_group(claims.groups, self.settings.oidc_admin_group), actor)
        return self.accounts.start_session(person, address, browser, identity.id), person

    def link(
        self, person: Person, userinfo: Mapping[str, Any], actor: Actor, invitation: str | None = None
    ) -> LinkedIdentity:
        """Link an identity, using up the link of an ``invitation``. Raises NotAllowed, IdentityTaken, LinkOver."""
        external = self._admitted(userinfo).external
        linked = self.identities.find(external)
        if linked is not None and linked[0].id == person.id:
            if invitation is not None:
                self.accounts.credentials.spend_link(invitation)
            return linked[1]
        identity = self.identities.add(person.id, external, invitation)
        self.accounts.note(actor, f"linked an account of {self._label}", f"{person.name}: {identity.label}")
        return identity

    def link_invited(
        self, invitation: str, userinfo: Mapping[str, Any], address: str, browser: str
    ) -> tuple[str, Person]:
        """Link an identity through a one-time link, and sign in. Raises LinkOver, NotAllowed, IdentityTaken."""
        person = self.accounts.credentials.link(invitation)
        self.link(person, userinfo, Actor(person.name, address), invitation)
        return self.sign_in(userinfo, address, browser)

    def unlink(self, person: Person, identity_id: int, keep_session: int | None, actor: Actor) -> None:
        """Unlink an identity and end the sessions started with it, except one. Raises CredentialNotFound, LastWayIn."""
        gone = self.identities.remove(person.id, identity_id, keep_session)
        self.accounts.note(actor, "unlinked an account", f"{person.name}: {gone.label}")

    def link_subject(self, person: Person, subject: str, actor: Actor) -> LinkedIdentity:
        """Link a subject of the provider, named by an administrator. Raises InvalidRequest, IdentityTaken."""
        if not admission.is_subject(subject):
            raise InvalidRequest(f"The subject must have 1 to {admission.MAX_SUBJECT_CHARS} characters.")
        if self.settings.oidc_issuer is None:
            raise InvalidRequest("oidc_issuer is not set, so there is no provider whose account could be linked.")
        identity = self.identities.add(person.id, ExternalIdentity(self.settings.oidc_issuer, subject, subject))
        self.accounts.note(actor, f"linked an account of {self._label}", f"{person.name}: {identity.label}")
        return identity

    @property
    def _label(self) -> str:
        return self.provider.label if self.provider else "the provider"

    def _admitted(self, userinfo: Mapping[str, Any]) -> admission.Claims:
        claims = admission.claims_of(userinfo, self.settings.oidc_groups_claim)
        admission.refuse_uninvited(claims, self.settings, self._label)
        return claims

    def _make(self, claims: admission.Claims, actor: Actor) -> tuple[Person, LinkedIdentity]:
        """Create an account at somebody's first sign-in."""
        # The first account is an administrator's; it is never created from outside.
        if not (self.settings.oidc_create_accounts and self.accounts.any()):
            raise NotAllowed(
                f"No account here is linked to {claims.external.label}. Ask an administrator for one. If you already "
                "have one, sign in with your password and link it under Account."
            )
        role = admission.role_by_group(claims.groups, self.settings.oidc_admin_group) or "member"
        for name in admission.names_to_try(claims.names, MAX_NAME_CHARS):
            with suppress(NameTaken):
                self.accounts.add(name, role, actor, known_by=claims.external)
            # Also if another request was quicker.
            linked = self.identities.find(claims.external)
            if linked is not None:
                return linked
        raise NotAllowed(f"All names for the account of {claims.external.label} are taken. Ask an administrator.")

    # --- a proxy

    def by_proxy(self, name: str, groups: frozenset[str], address: str | None) -> Person:
        """Return the person a proxy names; their account may be created at first sight. Raises NotAllowed."""
        if "," in name:  # How a server joins headers of the same name, one of which the caller may have sent.
            raise NotAllowed(f'The proxy names several people: "{name[:MAX_NAME_CHARS]}".')
        person = self._named(name)
        actor = Actor("proxy", address)
        role = admission.role_by_group(groups, self.settings.proxy_admin_group)
        if person is None:
            if not (self.settings.proxy_create_accounts and self.accounts.any()):
                raise NotAllowed(f'There is no account "{name[:MAX_NAME_CHARS]}". Ask an administrator for one.')
            try:
                return self.accounts.add(name, role or "member", actor)
            except NameTaken:
                person = self._named(name)  # Another request was quicker.
                if person is None:
                    raise NotAllowed(
                        f'"{name}" looks like the name of another account. Ask an administrator.'
                    ) from None
        if person.disabled_at is not None:
            raise NotAllowed(DISABLED)
        return self._give_role(person, role, actor)

    def _named(self, name: str) -> Person | None:
        """Return the person with this exact name; not a look-alike, which people could choose elsewhere."""
        try:
            person = self.accounts.people.get(name)
        except AccountNotFound:
            return None
        return person if person.name.casefold() == name.casefold() else None

    def _give_role(self, person: Person, role: Role | None, actor: Actor) -> Person:
        if role is None or role == person.role:
            return person
        try:
            self.accounts.set_role(person, role, actor)
        except LastAdmin:
            log.warning("%s stays an administrator without being in the group: there is no other.", person.name)
            return person
        return self.accounts.people.get(person.id)
