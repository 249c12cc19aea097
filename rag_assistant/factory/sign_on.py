"""Coming in on the word of a provider or a proxy, where the settings name one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rag_assistant.accounts.accounts import Accounts
from rag_assistant.accounts.single_sign_on import SingleSignOn
from rag_assistant.factory.extras import extra_for
from rag_assistant.records.errors import SettingsError
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.accounts.identities import LinkedIdentityStore
from rag_assistant.storage.database import Database

if TYPE_CHECKING:
    from rag_assistant.accounts.oidc import OpenIdProvider


def build_single_sign_on(values: Settings, database: Database, accounts: Accounts) -> SingleSignOn:
    """Return what lets people in on the word of somebody else. Raises SettingsError."""
    if values.proxy_user_header is not None:
        if not values.proxy_user_from:
            raise SettingsError("proxy_user_header is set; set proxy_user_from, too: the addresses of the proxy.")
        if values.oidc_issuer is not None:
            raise SettingsError("proxy_user_header and oidc_issuer are both set. Remove one: either signs people in.")
    return SingleSignOn(accounts, LinkedIdentityStore(database), values, open_provider(values))


def open_provider(values: Settings) -> OpenIdProvider | None:
    """Return the provider of the settings, not asked yet, ``None`` if there is none. Raises SettingsError.

    Authlib is loaded only if there is one.
    """
    issuer = values.oidc_issuer
    if issuer is None:
        return None
    with extra_for("oidc_issuer", "oidc"):
        from rag_assistant.accounts.oidc import OpenIdProvider, is_safe_url
    if not is_safe_url(issuer):
        raise SettingsError(f'oidc_issuer is "{issuer}"; it must start with https://, except on this machine.')
    if values.oidc_client_id is None:
        raise SettingsError("oidc_issuer is set; set oidc_client_id, too: what the provider calls this server.")
    if values.oidc_create_accounts and not (values.oidc_allowed_domains or values.oidc_allowed_groups):
        raise SettingsError(
            "oidc_create_accounts is true; say for whom, in oidc_allowed_domains or oidc_allowed_groups. "
            '["*"] as oidc_allowed_domains is everybody whom the provider lets in.'
        )
    label = values.oidc_label or urlsplit(issuer).hostname or issuer
    return OpenIdProvider(issuer, values.oidc_client_id, values.oidc_client_secret, values.oidc_scopes, label)
