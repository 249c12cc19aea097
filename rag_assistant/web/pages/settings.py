"""The settings page: a form for commonly changed settings, and one for each of all settings with its origin."""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from flask import Blueprint, Response, has_request_context, make_response, render_template, request
from msgspec import Struct

from rag_assistant import __version__
from rag_assistant.conversations.model_profile import profile_for
from rag_assistant.llm.client import OPENAI_BASE_URL
from rag_assistant.llm.connection_check import ConnectionCheck
from rag_assistant.records import errors
from rag_assistant.settings.conversations import ConversationSettings, ModelSettings
from rag_assistant.settings.declaration import Group, Url
from rag_assistant.settings.documents import DocumentSettings
from rag_assistant.settings.live import LiveSettings
from rag_assistant.settings.loading import value_of_text
from rag_assistant.settings.people import PeopleSettings
from rag_assistant.settings.schema import BY_HAND, ENVIRONMENT_ONLY, RARELY_CHANGED, SECRET, Settings, is_live
from rag_assistant.settings.server import ServerSettings
from rag_assistant.web.api.archive import import_sent_file
from rag_assistant.web.errors import page_with_error
from rag_assistant.web.i18n.languages import LANGUAGES, N_
from rag_assistant.web.identity import identity, note_for_audit
from rag_assistant.web.pages.frame import drawer, frame
from rag_assistant.web.routing import ADMIN, ASK, READ, services
from rag_assistant.web.schemas import ImportAnswer
from rag_assistant.web.security import is_from_this_machine

blueprint = Blueprint("settings_pages", __name__)

# In the order in which they are shown.
TOPICS: dict[str, type[Group]] = {
    "Model": ModelSettings,
    "Memory": ConversationSettings,
    "Documents": DocumentSettings,
    "Server": ServerSettings,
    "People": PeopleSettings,
}
# Rarely changed settings, of all topics.
ADVANCED = N_("Rarely changed")
ORIGINS = {"default": "default", "file": "settings.json", "page": N_("settings page"), "environment": "environment"}

# The settings in the form, with their labels; nothing else is written.
EDITED = {
    "openai_base_url": N_("Address"),
    "openai_api_key": N_("API key"),
    "openai_model": N_("Model"),
    "max_history_turns": N_("How many earlier turns to send"),
    "on_overflow": N_("When there are more turns than that"),
    "search_conversations": N_("Search other conversations, too"),
}
ADDRESSES = {"http://localhost:11434/v1": N_("Ollama on this machine"), OPENAI_BASE_URL: N_("OpenAI")}
NOT_HERE = (
    "Without accounts, settings are changed on the machine that runs the server: in a browser there, or in the file."
)
NOT_ELSEWHERE = "This setting is changed on the machine that runs the server: in a browser there, or in the file."
DEFAULTS = Settings().model_dump(mode="json")


class SettingView(Struct, frozen=True):
    """One setting: ``value`` as JSON (for a secret, only whether it is set), ``line`` to copy into settings.json.

    ``field`` is how it is changed, with ``text`` in it: one of ``choices``, or "line", "lines" or "secret". It is
    empty for what is ``fixed`` by "environment", or changed on the server's machine alone ("machine").
    """

    name: str
    value: str
    origin: str
    description: str
    allowed: str
    live: bool
    line: str
    default: str
    text: str
    choices: tuple[str, ...]
    field: str
    fixed: str

    def holds(self, words: str) -> bool:
        """Return whether a setting matches search words."""
        text = f"{self.name} {self.name.replace('_', ' ')} {self.description} {self.value}".lower()
        return all(word in text for word in words.lower().split())


@blueprint.get("/settings", policy=READ)
def settings(
    check: ConnectionCheck | None = None,
    imported: ImportAnswer | None = None,
    import_error: errors.AssistantError | None = None,
    change_error: errors.AssistantError | None = None,
    *,
    saved: bool = False,
    about: str = "",
    models: tuple[str, ...] = (),
) -> str:
    """Show every setting, or those that match the words of ``filter``.

    ``saved`` and ``change_error`` are about the form of one setting, or the first one; ``models`` are those to choose.
    """
    in_force, own_models = services().settings, services().models
    stamp = in_force.stamp() if may_change() else ""
    sought = request.args.get("filter", "").strip()
    return render_template(
        drawer("settings.html"),
        filter=sought,
        topics=settings_view(in_force.current, in_force.origins, sought, in_force.configured),
        advanced=ADVANCED,
        version=__version__,
        may_change=may_change(),
        stamp=stamp,
        addresses=ADDRESSES,
        languages=LANGUAGES,
        typed=request.form if not saved else {},
        from_environment=[name for name in EDITED if in_force.origins[name] == "environment"],
        file_is_there=in_force.path.exists(),
        local_servers=[] if own_models.connected else services().local_servers.find(),
        check=check,
        models=models or (check.models if check else ()),
        about=about,
        guess=own_models.known_endpoint().guess,
        omitted=own_models.extra_requests.omitted(own_models.known_endpoint()),
        small_model=profile_for(own_models.known_endpoint(), in_force.current).small_model,
        imported=imported,
        import_error=import_error,
        change_error=_as_labelled(str(change_error)) if change_error else None,
        saved=saved,
        index_notice=services().vectors.notice,
        differences=services().membership.leases.differences() if may_change() else (),
        **frame(None),
    )


@blueprint.post("/settings", policy=ADMIN)
def change() -> Response:
    """Write a form's changes into settings.json; with ``test``, test its connection, with ``list``, list its models."""
    if not may_change():
        raise errors.NotAllowed(NOT_HERE)
    in_force, about = services().settings, request.form.get("setting", "")
    in_force.look()
    try:
        changed = changed_values(in_force)
        if not BY_HAND.isdisjoint(changed) and not is_from_this_machine():
            raise errors.NotAllowed(NOT_ELSEWHERE)
        if "test" in request.form:
            return make_response(settings(services().check_connection(in_force.tried(changed))))
        if "list" in request.form:
            models = services().models.trying(in_force.tried(changed))
            if not models.has_endpoint:
                raise errors.NoEndpoint
            return make_response(settings(models=models.listed()))
        if changed:
            in_force.change(changed, request.form.get("stamp", ""))
            note_for_audit(f"changed settings ({', '.join(sorted(changed))})", in_force.path.name)
    except errors.SettingsError as error:
        return make_response(settings(change_error=error, about=about), 422)
    except (errors.SettingsChanged, errors.NoEndpoint, errors.ModelError) as error:
        return page_with_error(error, settings(change_error=error, about=about))
    return make_response(settings(saved=bool(changed) or bool(about), about=about))


def _as_labelled(error: str) -> str:
    """Return a setting's error with its label in place of its name, or why an endpoint lists no models."""
    name, blank, rest = errors.cause_alone(error).partition(" ")
    return f"{EDITED.get(name, name)}{blank}{_in_words(rest)}"


def _in_words(text: str) -> str:
    """Return what is said of a setting in JSON, for a form: null is a field that is left empty."""
    return re.sub(r"(^|\. )null\b", r"\1Empty", text).replace("null", "empty")


def may_change() -> bool:
    """Return whether the person may change settings: an administrator, or without accounts somebody on this machine."""
    return identity().may_manage and (identity().person is not None or is_from_this_machine())


def changed_values(in_force: LiveSettings) -> dict[str, Any]:
    """Return a form's changes. Environment variables stay, and so does a secret that isn't typed again."""
    current = in_force.configured.model_dump(mode="json")
    if (name := request.form.get("setting", "")) in Settings.model_fields and name not in ENVIRONMENT_ONLY:
        text = request.form.get("value", "").replace("\r\n", "\n").strip()
        value = DEFAULTS[name] if "default" in request.form else typed_value(name, text)
        is_kept = name in SECRET and not text and "default" not in request.form
        is_changed = value != current[name] and in_force.origins[name] != "environment"
        key = name.replace("_base_url", "_api_key")  # It is for the endpoint that it was typed for.
        also = {key: None} if current.get(key) and in_force.origins[key] != "environment" else {}
        return also | {name: value} if is_changed and not is_kept else {}
    values: dict[str, Any] = {name: request.form[name].strip() or None for name in EDITED if name in request.form}
    if address := values.get("openai_base_url"):
        values["openai_base_url"] = _with_scheme(address)
    port = request.form.get("use", "")  # The port of a model server on this machine.
    values |= next((one.settings for one in services().local_servers.find() if str(one.port) == port), {})
    limit = values.pop("max_history_turns", None)
    if limit is not None:
        values["max_history_turns"] = typed_value("max_history_turns", "" if limit.lower() == "all" else limit)
    address = current["openai_base_url"]  # If the environment fixes it, the form has none.
    is_kept = values.get("openai_base_url", address) == address and "forget_key" not in request.form
    if values.get("openai_api_key") is None and is_kept:
        values.pop("openai_api_key", None)
    own = {name: value for name, value in values.items() if in_force.origins[name] != "environment"}
    return {name: value for name, value in own.items() if value != current[name]}


def typed_value(name: str, text: str) -> Any:
    """Return what is typed for a setting: lines for a list, and nothing for null where that is allowed."""
    field = Settings.model_fields[name]
    if isinstance(field.default, (list, tuple)):
        return [line.strip() for line in text.splitlines() if line.strip()]
    if not text and type(None) in get_args(field.annotation):
        return None
    return _with_scheme(text) if text and Url in get_args(field.annotation) else value_of_text(name, text)


def _with_scheme(address: str) -> str:
    """Return an address with http:// on this machine or by number, otherwise https://, if it has no scheme."""
    host = re.split("[:/]", address)[0]
    is_near = "." not in host or host.replace(".", "").isdigit()
    return address if "://" in address else f"{'http' if is_near else 'https'}://{address}"


@blueprint.post("/settings/import", policy=ASK)
def import_file() -> Response:
    """Import the conversations of a file, and show the result."""
    try:
        return make_response(settings(imported=import_sent_file()))
    except errors.AssistantError as error:
        return page_with_error(error, settings(import_error=error))


def settings_view(
    values: Settings, origins: Mapping[str, str], sought: str = "", configured: Settings | None = None
) -> dict[str, list[SettingView]]:
    """Return the settings by topic that contain all words of ``sought``; empty topics are left out."""
    content, edited = values.model_dump(mode="json"), (configured or values).model_dump(mode="json")
    topics: dict[str, list[SettingView]] = {topic: [] for topic in (*TOPICS, ADVANCED)}
    for topic, group in TOPICS.items():
        for name in group.model_fields:
            view = _view(name, content[name], edited[name], origins[name])
            if view.holds(sought):
                topics[ADVANCED if name in RARELY_CHANGED and group is not PeopleSettings else topic].append(view)
    return {topic: views for topic, views in topics.items() if views}


def _view(name: str, value: Any, edited: Any, origin: str) -> SettingView:
    field = Settings.model_fields[name]
    extra, is_list = field.json_schema_extra, isinstance(field.default, (list, tuple))
    kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if get_origin(kind) is Literal]
    secret = name in SECRET
    text = edited if isinstance(edited, str) else json.dumps(edited, ensure_ascii=False)
    at_machine = name in BY_HAND and not (has_request_context() and is_from_this_machine())
    return SettingView(
        name=name,
        value=("set" if value is not None else "not set") if secret else json.dumps(value, ensure_ascii=False),
        origin=f"{ORIGINS[origin]} ({name.upper()})" if origin == "environment" else ORIGINS[origin],
        description=_in_words(field.description or ""),
        allowed=_in_words(str(extra["allowed"])) if isinstance(extra, dict) else "",
        live=is_live(name),
        line=f"{json.dumps(name)}: {json.dumps('...' if secret else value, ensure_ascii=False)}",
        default="" if DEFAULTS[name] in (None, [], {}, "") else str(json.dumps(DEFAULTS[name], ensure_ascii=False)),
        text="" if secret or edited is None else "\n".join(edited) if is_list else text,
        choices=("true", "false") if field.annotation is bool else get_args(kinds[0]) if kinds else (),
        field="secret" if secret else "lines" if is_list or name == "instructions" else "line",
        fixed="environment" if origin == "environment" or name in ENVIRONMENT_ONLY else "machine" * at_machine,
    )
