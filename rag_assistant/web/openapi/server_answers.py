"""What the server says of itself, as types of answers; see turn_answers.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from rag_assistant.web.openapi.turn_answers import (
    EXACT,
)


@EXACT
class CheckStep(TypedDict):
    """A step of the test of an endpoint."""

    name: Literal["models", "answer", "embeddings"]
    ok: bool
    message: str
    seconds: float


@EXACT
class ModelTestAnswer(TypedDict):
    """Whether the endpoints of the settings answer."""

    ok: bool
    base_url: str | None
    model: str | None
    models: list[str]
    steps: list[CheckStep]


@EXACT
class HealthAnswer(TypedDict):
    """The server is alive."""

    status: Literal["ok"]


@EXACT
class ReadyAnswer(TypedDict):
    """The state of each part."""

    ready: bool
    parts: dict[str, str]
    settings_problem: str | None
    restart_required: list[str]


@EXACT
class SettingAnswer(TypedDict):
    """A setting; of a secret only whether it is set."""

    name: str
    origin: str
    live: bool
    description: str
    value: NotRequired[Any]
    set: NotRequired[bool]


@EXACT
class SettingsAnswer(TypedDict):
    """All settings in force."""

    settings: list[SettingAnswer]
    problem: str | None
    restart_required: list[str]


@EXACT
class SettingsVersion(TypedDict):
    """A value that changes whenever the settings do."""

    version: str | int
