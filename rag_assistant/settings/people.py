"""Who may sign in, and how much each person may use."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, field_validator

from rag_assistant.settings.declaration import FROM_1_OR_NO_LIMIT, NETWORKS, Group, Network, Url, at_start, setting

# An HTTP header name; without underscores, which servers turn into hyphens.
HEADER_PATTERN = r"^[A-Za-z][A-Za-z0-9-]*$"
BUDGET = "a number above 0 in the currency of model_prices, or null for no limit"
SMTP = r"^(smtps?|smtp\+plain)://([^\s/@?#:\[\]]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$"
EMAIL = r"^[A-Za-z0-9.!#$%&'*+/=^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){0,7}$"  # Headers decode =?.
HEADER = 'the name of a header, such as "Remote-User", or null'


class PeopleSettings(Group):
    """Who may sign in, and how much each person may use."""

    max_questions_per_minute: int | None = setting(30, allowed=FROM_1_OR_NO_LIMIT, ge=1)
    """With accounts: maximum questions per person per minute; further ones are refused with 429."""
    max_running_answers_per_person: int | None = setting(10, allowed=FROM_1_OR_NO_LIMIT, ge=1)
    """With accounts: maximum answers per person running at once; further questions are refused with 429."""
    max_stored_mb_per_person: int | None = setting(None, allowed=FROM_1_OR_NO_LIMIT, ge=1)
    """With accounts: maximum size of all files in a person's own libraries, in megabytes."""
    model_prices: dict[str, Annotated[list[NonNegativeFloat], Field(min_length=2, max_length=2)]] = setting(
        {}, allowed='an object such as {"gpt-4o-mini": [0.15, 0.6]}', strict=False
    )
    """What a million tokens of the prompt and of the answer cost, for each model: for the table of use and budgets."""
    oidc_issuer: Url | None = at_start(None)
    """The issuer of an OpenID Connect provider with which people can sign in, such as
    https://login.example/realms/team. Needs the extra oidc."""
    oidc_client_id: str | None = at_start(None, min_length=1)
    """This server's client id at the provider."""
    oidc_client_secret: str | None = at_start(
        None, allowed="text, or null, and set only in the environment", min_length=1
    )
    """The client's secret. null: this server is a public client. Never shown or logged."""
    oidc_scopes: tuple[str, ...] = at_start(
        ("openid", "profile", "email"), allowed='a list of scopes, "openid" among them'
    )
    """The scopes to request from the provider."""
    oidc_label: str | None = at_start(None, allowed="text of up to 40 characters, or null", min_length=1, max_length=40)
    """The provider's name on the button: Sign in with ... null: its host name."""
    oidc_allowed_domains: tuple[str, ...] = at_start(
        (), allowed='a list of domains, such as ["example.org"], or ["*"] for everybody the provider lets in'
    )
    """Only people with a verified email address in one of these may sign in with the provider. Empty: not checked."""
    oidc_groups_claim: str = at_start(
        "groups", allowed='the name of a claim, such as "groups" or "realm_access.roles"', min_length=1
    )
    """The claim that contains a person's groups."""
    oidc_allowed_groups: tuple[str, ...] = at_start((), allowed='a list of groups, such as ["assistant"]')
    """Only people in one of these may sign in with the provider. Empty: not checked."""
    oidc_admin_group: str | None = at_start(None, allowed="the name of a group, or null", min_length=1)
    """People in this group become administrators at their next sign-in, all others members. null: roles are set
    here."""
    oidc_create_accounts: bool = at_start(False)
    """Create an account at the first sign-in. false: only linked accounts can sign in. true needs oidc_allowed_domains
    or oidc_allowed_groups."""
    proxy_user_header: str | None = at_start(None, allowed=HEADER, pattern=HEADER_PATTERN)
    """The header in which a proxy says who is signed in. It replaces the sign-in form. null: off."""
    proxy_user_from: tuple[Network, ...] = at_start((), allowed=NETWORKS)
    """The proxies whose proxy_user_header is trusted. It is removed from all other requests."""
    proxy_groups_header: str | None = at_start(None, allowed=HEADER, pattern=HEADER_PATTERN)
    """The header with the groups of the signed-in person."""
    proxy_admin_group: str | None = at_start(None, allowed="the name of a group, or null", min_length=1)
    """People in this group are administrators, all others members. null: roles are set here."""
    proxy_create_accounts: bool = at_start(False)
    """Create an account for each new name."""
    proxy_logout_link: str | None = at_start(
        None,
        allowed='a URL or a path such as "/oauth2/sign_out", or null',
        pattern=r"^(https?://[^\s/@]+(/\S*)?|/([^\s/\\]\S*)?)$",
    )
    """Where Sign out leads. null: no link is shown."""
    smtp_url: str | None = setting(
        None, allowed="smtp://, smtps:// or smtp+plain:// with a host and perhaps a port, or null", pattern=SMTP
    )
    """The server that emails links for choosing a password, such as smtp://mail.example:587. smtp: encrypted by
    STARTTLS; smtps: from the start; smtp+plain: not. null: links are only shown."""
    smtp_from: str | None = setting(None, allowed="an email address, or null", pattern=EMAIL)
    """The sender of these emails."""
    smtp_user: str | None = setting(None, min_length=1)
    """The name to sign in there. null: none."""
    smtp_password: str | None = setting(None, allowed="text, or null, and set only in the environment", min_length=1)
    """The password for it. Never shown or logged."""
    max_tokens_per_day: int | None = setting(None, allowed=FROM_1_OR_NO_LIMIT, ge=1)
    """Maximum tokens in 24 hours for everybody together, in requests and answers; further questions are refused with
    503."""
    max_tokens_per_day_per_person: int | None = setting(None, allowed=FROM_1_OR_NO_LIMIT, ge=1)
    """With accounts: maximum tokens in 24 hours for one person; further questions are refused with 429."""
    max_cost: float | None = setting(None, allowed=BUDGET, gt=0)
    """The budget for models of everybody together, by model_prices; then further questions are refused with 503."""
    max_cost_per_person: float | None = setting(None, allowed=BUDGET, gt=0)
    """With accounts: the budget of one person; then further questions are refused with 429."""
    max_cost_period: Literal["day", "month"] = "month"
    """What the budgets are for: the last 24 hours, or the last 30 days."""

    @field_validator("oidc_scopes")
    @classmethod
    def _openid_is_asked_for(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes:
            raise ValueError("without openid the provider does not say who somebody is")
        return scopes
