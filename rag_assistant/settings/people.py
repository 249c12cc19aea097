"""Who comes in, and how much each may take."""

from __future__ import annotations

from pydantic import field_validator

from rag_assistant.settings.declaration import (
    HTTP_URL,
    HTTP_URL_PATTERN,
    NETWORKS,
    WHOLE_FROM_1,
    Group,
    Network,
    setting,
)

# As HTTP names a header; without underscores, which servers take for hyphens.
HEADER_PATTERN = r"^[A-Za-z][A-Za-z0-9-]*$"
HEADER = 'the name of a header, such as "Remote-User", or null'


class PeopleSettings(Group):
    """Who comes in, and how much each may take."""

    max_questions_per_minute: int | None = setting(
        30,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: maximum questions of a person per minute; further ones are refused with 429.",
        ge=1,
    )
    max_running_answers_per_person: int | None = setting(
        10,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: maximum answers of a person running at once; further questions are refused with 429.",
        ge=1,
    )
    max_stored_mb_per_person: int | None = setting(
        None,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: maximum size of all files in a person's own libraries, in megabytes.",
        ge=1,
    )
    oidc_issuer: str | None = setting(
        None,
        HTTP_URL,
        "The issuer of an OpenID Connect provider with which people can sign in, such as "
        "https://login.example/realms/team. Needs the extra oidc.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    oidc_client_id: str | None = setting(
        None, "text, or null", "This server's client id at the provider.", live=False, min_length=1
    )
    oidc_client_secret: str | None = setting(
        None,
        "text, or null, and set only in the environment",
        "The client's secret. null: this server is a public client. Never shown or logged.",
        live=False,
        min_length=1,
    )
    oidc_scopes: tuple[str, ...] = setting(
        ("openid", "profile", "email"),
        'a list of scopes, "openid" among them',
        "The scopes that the provider is asked for.",
        live=False,
        strict=False,
    )
    oidc_label: str | None = setting(
        None,
        "text of up to 40 characters, or null",
        "The provider's name on the button: Sign in with ... null: its host name.",
        live=False,
        min_length=1,
        max_length=40,
    )
    oidc_allowed_domains: tuple[str, ...] = setting(
        (),
        'a list of domains, such as ["example.org"], or ["*"] for everybody whom the provider lets in',
        "Only people with a verified e-mail address in one of these may sign in with the provider. Empty: not checked.",
        live=False,
        strict=False,
    )
    oidc_groups_claim: str = setting(
        "groups",
        'the name of a claim, such as "groups" or "realm_access.roles"',
        "The claim that contains a person's groups.",
        live=False,
        min_length=1,
    )
    oidc_allowed_groups: tuple[str, ...] = setting(
        (),
        'a list of groups, such as ["assistant"]',
        "Only people in one of these may sign in with the provider. Empty: not checked.",
        live=False,
        strict=False,
    )
    oidc_admin_group: str | None = setting(
        None,
        "the name of a group, or null",
        "People in this group become administrators at their next sign-in, all others members. null: roles are set "
        "here.",
        live=False,
        min_length=1,
    )
    oidc_create_accounts: bool = setting(
        False,
        "true or false",
        "Create an account at the first sign-in. false: only linked accounts can sign in. true needs "
        "oidc_allowed_domains or oidc_allowed_groups.",
        live=False,
    )
    proxy_user_header: str | None = setting(
        None,
        HEADER,
        "The header in which a proxy says who is signed in. It replaces the sign-in form. null: off.",
        live=False,
        pattern=HEADER_PATTERN,
    )
    proxy_user_from: tuple[Network, ...] = setting(
        (),
        NETWORKS,
        "The proxies whose proxy_user_header is trusted. It is removed from all other requests.",
        live=False,
        strict=False,
    )
    proxy_groups_header: str | None = setting(
        None, HEADER, "The header with the groups of whoever is signed in.", live=False, pattern=HEADER_PATTERN
    )
    proxy_admin_group: str | None = setting(
        None,
        "the name of a group, or null",
        "People in this group are administrators, all others members. null: roles are set here.",
        live=False,
        min_length=1,
    )
    proxy_create_accounts: bool = setting(False, "true or false", "Create an account for each new name.", live=False)
    proxy_logout_link: str | None = setting(
        None,
        'a URL or a path such as "/oauth2/sign_out", or null',
        "Where Sign out leads. null: no link is shown.",
        live=False,
        pattern=r"^(https?://[^\s/@]+(/\S*)?|/([^\s/\\]\S*)?)$",
    )
    max_tokens_per_day: int | None = setting(
        None,
        f"{WHOLE_FROM_1}, or null for no limit",
        "Maximum tokens in 24 hours for everybody together, requests and answers; further questions are refused with "
        "503.",
        ge=1,
    )
    max_tokens_per_day_per_person: int | None = setting(
        None,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: maximum tokens in 24 hours for one person; further questions are refused with 429.",
        ge=1,
    )

    @field_validator("oidc_scopes")
    @classmethod
    def _openid_is_asked_for(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes:
            raise ValueError("without openid the provider says nothing about who somebody is")
        return scopes
