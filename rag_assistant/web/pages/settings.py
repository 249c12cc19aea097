"""The page of the settings: what holds, where it comes from, and how it is changed. It changes no file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, make_response, render_template, request
from msgspec import Struct

from rag_assistant import __version__
from rag_assistant.llm.connection_check import ConnectionCheck
from rag_assistant.records import MAX_INT32
from rag_assistant.records.errors import AssistantError
from rag_assistant.settings.conversations import ConversationSettings, ModelSettings
from rag_assistant.settings.declaration import Group
from rag_assistant.settings.documents import DocumentSettings
from rag_assistant.settings.package_files import home
from rag_assistant.settings.people import PeopleSettings
from rag_assistant.settings.schema import SECRET, Settings, is_advanced, is_live
from rag_assistant.settings.server import ServerSettings
from rag_assistant.web.api.archive import Imported, import_sent_file
from rag_assistant.web.errors import page_with_error
from rag_assistant.web.i18n.languages import N_
from rag_assistant.web.pages.frame import drawer, frame
from rag_assistant.web.request_parsing import whole_number
from rag_assistant.web.routing import ADMIN, ASK, READ
from rag_assistant.web.services import services

blueprint = Blueprint("settings_pages", __name__)

# In the order in which they are shown.
TOPICS: dict[str, type[Group]] = {
    "Memory": ConversationSettings,
    "Model": ModelSettings,
    "Documents": DocumentSettings,
    "Server": ServerSettings,
    "People": PeopleSettings,
}
# What hardly anyone changes, of all topics.
ADVANCED = "Advanced"
ORIGINS = {"default": "default", "file": "settings.json", "environment": "environment"}

# What connects a model, ready to be pasted into settings.json.
LOCAL = {N_("A local server, such as Ollama"): {"openai_base_url": "http://localhost:11434/v1"}}
PROVIDER = {
    N_("A provider with a key, such as OpenAI"): {
        "openai_base_url": "https://api.openai.com/v1",
        "openai_api_key": "your key",
        "openai_model": "gpt-4o-mini",
    },
}


class SettingView(Struct, frozen=True):
    """One setting: ``value`` as JSON (of a secret only whether it is set), ``line`` to copy into settings.json."""

    name: str
    value: str
    origin: str
    description: str
    allowed: str
    live: bool
    line: str

    def holds(self, words: str) -> bool:
        """Tell whether a person who looks for these words means this setting."""
        text = f"{self.name} {self.name.replace('_', ' ')} {self.description} {self.value}".lower()
        return all(word in text for word in words.lower().split())


@blueprint.get("/settings", policy=READ)
def settings() -> str:
    """Show every setting, or those that hold the words of ``filter``; with what one conversation has of its own."""
    return _settings_page()


@blueprint.post("/settings/test", policy=ADMIN)
def test_connection() -> str:
    """Test the endpoints of the settings, and show what came of it."""
    return _settings_page(services().check_connection())


@blueprint.post("/settings/import", policy=ASK)
def import_file() -> Response:
    """Import the conversations of a file, and show what came of it."""
    try:
        return make_response(_settings_page(imported=import_sent_file()))
    except AssistantError as error:
        return page_with_error(error, _settings_page(import_error=error))


def _settings_page(
    check: ConnectionCheck | None = None, imported: Imported | None = None, import_error: AssistantError | None = None
) -> str:
    number = whole_number("conversation", None, 1, MAX_INT32)
    shown = services().conversations.get(number) if number is not None else None
    in_force, models = services().settings, services().models
    local_servers = [] if models.connected else services().local_servers.find()
    sought = request.args.get("filter", "").strip()
    return render_template(
        drawer("settings.html"),
        filter=sought,
        topics=settings_view(in_force.current, in_force.origins, sought),
        advanced=ADVANCED,
        version=__version__,
        file_is_there=in_force.path.exists(),
        env_path=home() / ".env",
        local_servers=local_servers,
        connections=PROVIDER if local_servers else LOCAL | PROVIDER,
        has_endpoint=models.has_endpoint,
        endpoint=models.configured_endpoint(),
        check=check,
        imported=imported,
        import_error=import_error,
        index_notice=services().vectors.notice,
        **frame(shown),
    )


def settings_view(values: Settings, origins: Mapping[str, str], sought: str = "") -> dict[str, list[SettingView]]:
    """Return the settings by topic, those that hold all the words of ``sought``; topics without any are left out."""
    content = values.model_dump(mode="json")
    topics: dict[str, list[SettingView]] = {topic: [] for topic in (*TOPICS, ADVANCED)}
    for topic, group in TOPICS.items():
        for name in group.model_fields:
            view = _view(name, content[name], origins[name])
            if view.holds(sought):
                topics[ADVANCED if is_advanced(name) and group is not PeopleSettings else topic].append(view)
    return {topic: views for topic, views in topics.items() if views}


def _view(name: str, value: Any, origin: str) -> SettingView:
    field = Settings.model_fields[name]
    extra = field.json_schema_extra
    secret = name in SECRET
    return SettingView(
        name=name,
        value=("set" if value is not None else "not set") if secret else json.dumps(value, ensure_ascii=False),
        origin=f"{ORIGINS[origin]} ({name.upper()})" if origin == "environment" else ORIGINS[origin],
        description=field.description or "",
        allowed=str(extra["allowed"]) if isinstance(extra, dict) else "",
        live=is_live(name),
        line=f"{json.dumps(name)}: {json.dumps('...' if secret else value, ensure_ascii=False)}",
    )


def settings_lines(values: dict[str, str], into_a_file: bool) -> str:
    """Return settings as JSON: lines to stand in front of those of a file, or a file of their own."""
    whole = json.dumps(values, indent=2, ensure_ascii=False)
    return whole.removeprefix("{\n").removesuffix("\n}") + "," if into_a_file else whole


blueprint.add_app_template_filter(settings_lines)
