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
        "With accounts: how many questions one person may ask within a minute; further ones are refused with 429.",
        ge=1,
    )
    max_running_answers_per_person: int | None = setting(
        10,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: how many answers of one person may run at once; further questions are refused with 429.",
        ge=1,
    )
    max_stored_mb_per_person: int | None = setting(
        None,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: how many megabytes the files in one person's own libraries may have together.",
        ge=1,
    )
    oidc_issuer: str | None = setting(
        None,
        HTTP_URL,
        "A provider of OpenID Connect with which people sign in, by its issuer, such as "
        "https://login.example/realms/team. Needs the extra oidc.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    oidc_client_id: str | None = setting(
        None, "text, or null", "What the provider calls this server.", live=False, min_length=1
    )
    oidc_client_secret: str | None = setting(
        None,
        "text, or null, and set only in the environment",
        "The client's secret. null: the provider knows this server as a public client. Never shown or logged.",
        live=False,
        min_length=1,
    )
    oidc_scopes: tuple[str, ...] = setting(
        ("openid", "profile", "email"),
        'a list of scopes, "openid" among them',
        "What the provider is asked to tell.",
        live=False,
        strict=False,
    )
    oidc_label: str | None = setting(
        None,
        "text of up to 40 characters, or null",
        "What the button calls the provider: Sign in with ... null: its host name.",
        live=False,
        min_length=1,
        max_length=40,
    )
    oidc_allowed_domains: tuple[str, ...] = setting(
        (),
        'a list of domains, such as ["example.org"], or ["*"] for everybody whom the provider lets in',
        "Whose verified e-mail address is in one of these may come in by the provider. Empty: no address is asked for.",
        live=False,
        strict=False,
    )
    oidc_groups_claim: str = setting(
        "groups",
        'the name of a claim, such as "groups" or "realm_access.roles"',
        "Where the provider says in which groups somebody is.",
        live=False,
        min_length=1,
    )
    oidc_allowed_groups: tuple[str, ...] = setting(
        (),
        'a list of groups, such as ["assistant"]',
        "Who is in one of these may come in by the provider. Empty: no group is asked for.",
        live=False,
        strict=False,
    )
    oidc_admin_group: str | None = setting(
        None,
        "the name of a group, or null",
        "Who is in it is an administrator, and who is not is a member, from their next sign-in on. null: roles are "
        "given here.",
        live=False,
        min_length=1,
    )
    oidc_create_accounts: bool = setting(
        False,
        "true or false",
        "Make an account at the first sign-in. false: only linked accounts come in. true needs oidc_allowed_domains or "
        "oidc_allowed_groups.",
        live=False,
    )
    proxy_user_header: str | None = setting(
        None,
        HEADER,
        "The header in which a proxy says who is signed in. Then there is no form to sign in. null: off.",
        live=False,
        pattern=HEADER_PATTERN,
    )
    proxy_user_from: tuple[Network, ...] = setting(
        (),
        NETWORKS,
        "From where proxy_user_header is believed. From anywhere else it is taken away.",
        live=False,
        strict=False,
    )
    proxy_groups_header: str | None = setting(
        None, HEADER, "The header with the groups of whoever is signed in.", live=False, pattern=HEADER_PATTERN
    )
    proxy_admin_group: str | None = setting(
        None,
        "the name of a group, or null",
        "Who is in it is an administrator, and who is not is a member. null: roles are given here.",
        live=False,
        min_length=1,
    )
    proxy_create_accounts: bool = setting(
        False, "true or false", "Make an account for whoever a proxy names for the first time.", live=False
    )
    proxy_logout_link: str | None = setting(
        None,
        'a URL or a path such as "/oauth2/sign_out", or null',
        "Where one signs out at the proxy. null: no link is shown.",
        live=False,
        pattern=r"^(https?://[^\s/@]+(/\S*)?|/([^\s/\\]\S*)?)$",
    )
    max_tokens_per_day: int | None = setting(
        None,
        f"{WHOLE_FROM_1}, or null for no limit",
        "How many tokens the model may take within 24 hours in all, requests and answers together; further questions "
        "are refused with 503.",
        ge=1,
    )
    max_tokens_per_day_per_person: int | None = setting(
        None,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: how many tokens the model may take within 24 hours for one person; further questions are "
        "refused with 429.",
        ge=1,
    )

    @field_validator("oidc_scopes")
    @classmethod
    def _openid_is_asked_for(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes:
            raise ValueError("without openid the provider says nothing about who somebody is")
        return scopes
