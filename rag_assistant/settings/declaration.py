"""How a setting is declared, and what several of them allow."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

WHOLE_FROM_1 = "a whole number, 1 or more"
HTTP_URL = "a URL starting with http:// or https://, without credentials or query string, or null"
HTTP_URL_PATTERN = r"^https?://[^\s/@?#]+(/[^\s?#]*)?$"
SECONDS = "a number of seconds, more than 0"
NETWORKS = 'a list of addresses or networks, such as ["10.0.0.2", "172.18.0.0/16"]'


def _network(value: str) -> str:
    ip_network(value, strict=False)
    return value


Network = Annotated[str, AfterValidator(_network)]


def setting(
    default: Any, allowed: str, description: str, *, live: bool = True, advanced: bool = False, **limits: Any
) -> Any:
    """Declare a setting: ``allowed`` completes "it must be ..."; a setting that is not ``live`` waits for a restart.

    ``advanced`` ones hardly anyone changes; so are those in OBJECTS.
    """
    extra: Any = {"allowed": allowed, "live": live, "advanced": advanced}
    return Field(default, description=description, json_schema_extra=extra, **limits)


class Group(BaseModel):
    """Settings of one topic."""

    # The whole is checked, and never a group by itself.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
