"""How a setting is declared: a field with a sentence below it. Allowed values follow from its type, or are given."""

from functools import partial
from ipaddress import ip_network
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

HTTP_URL_PATTERN = r"^https?://[^\s/@?#]+(/[^\s?#]*)?$"
FROM_0_OR_NO_LIMIT = "a whole number, 0 or more, or null for no limit"
FROM_1_OR_NO_LIMIT = "a whole number, 1 or more, or null for no limit"
NETWORKS = 'a list of addresses or networks, such as ["10.0.0.2", "172.18.0.0/16"]'


def _network(value: str) -> str:
    ip_network(value, strict=False)
    return value


Url = Annotated[str, Field(pattern=HTTP_URL_PATTERN)]
Network = Annotated[str, AfterValidator(_network)]
Origin = Annotated[str, Field(pattern=r"^https?://[^/*\s]+$")]


def setting(default: Any, *, allowed: str | None = None, live: bool = True, **limits: Any) -> Any:
    """Declare a setting: ``allowed`` completes "it must be ..."; one that isn't ``live`` needs a restart."""
    if isinstance(default, tuple):  # In JSON it is a list, which strict types would refuse.
        limits["strict"] = False
    return Field(default, json_schema_extra={"allowed": allowed, "live": live}, **limits)


at_start = partial(setting, live=False)


class Group(BaseModel):
    """Settings of one topic."""

    # Validated as a whole, never as a single group.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True, use_attribute_docstrings=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Set the ``allowed`` text of each field."""
        for field in cls.model_fields.values():
            extra: Any = field.json_schema_extra or {"live": True}
            field.description = " ".join((field.description or "").split())
            field.json_schema_extra = {**extra, "allowed": extra.get("allowed") or _allowed_by(field)}


def _allowed_by(field: FieldInfo) -> str:
    """Return what a field's type and constraints allow, in words."""
    kinds = get_args(field.annotation) if get_origin(field.annotation) in (Union, UnionType) else (field.annotation,)
    kind, *null = kinds
    limits = {
        name: getattr(limit, name) for limit in field.metadata for name in ("ge", "le", "gt") if hasattr(limit, name)
    }
    match limits:
        case {"ge": least, "le": most}:
            bounds = f" from {least:g} to {most:g}"
        case {"ge": least}:
            bounds = f", {least:g} or more"
        case {"gt": least}:
            bounds = f", more than {least:g}"
        case _:
            bounds = ""
    if get_origin(kind) is Literal:
        words = f"one of {', '.join(get_args(kind))}"
    elif kind == Url:
        words = "a URL starting with http:// or https://, without credentials or query string"
    else:
        words = {bool: "true or false", int: "a whole number", float: "a number of seconds"}.get(kind, "text")
    return f"{words}{bounds}{', or null' if null else ''}"
