"""The sidebar's list of conversations, the trash, and the theme."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from babel.dates import format_date, format_skeleton, format_time, format_timedelta
from flask import Blueprint, Response, render_template, request, url_for

from rag_assistant.conversations.retention import trash_date
from rag_assistant.records import MAX_INT32, Conversation, ListedConversation
from rag_assistant.records.errors import ConversationNotFound
from rag_assistant.web.api.conversations import listed_after, restored
from rag_assistant.web.forms import to_address, to_page
from rag_assistant.web.i18n.languages import LANGUAGES
from rag_assistant.web.languages import AUTO, LANGUAGE_COOKIE, gettext, language
from rag_assistant.web.pages.frame import ZONE_COOKIE, frame, listed, zone_named
from rag_assistant.web.request_parsing import ids_of, one_of, whole_number
from rag_assistant.web.routing import ASK, READ, services

blueprint = Blueprint("sidebar", __name__)

# Of archived or deleted conversations.
LISTED_AT_ONCE = 50
MAX_SELECTED = 200
# How long before a conversation moves to the trash this is announced.
TOLD_BEFORE = timedelta(days=7)
SECONDS_PER_YEAR = 365 * 24 * 3600
# The reader's preferences. A script writes them, or a plain form.
THEMES = ("system", "light", "dark")
THEME_COOKIE = "theme"
SIDEBAR_COOKIE = "sidebar"


@blueprint.get("/conversations", policy=READ)
def conversations() -> str:
    """Show a part of the list of conversations; with ``part`` alone, for the script that inserts it."""
    if request.args.get("part") == "1":
        return render_template("_conversations.html", **listed(_open()))
    if request.args.get("archived") != "1":
        return render_template("conversations.html", **frame(None))
    archived, older = listed_after("from", LISTED_AT_ONCE, archived=True)
    return render_template("conversations.html", **frame(None) | {"archived": archived, "older_archived": older})


def _open() -> Conversation | None:
    """Return the conversation that is open beside the list; ``None`` also if it was deleted."""
    number = whole_number("open", None, 1, MAX_INT32)
    try:
        return None if number is None else services().conversations.open(number)
    except ConversationNotFound:
        return None


@blueprint.post("/conversations/selected", policy=ASK)
def act_on_selected() -> Response:
    """Move, archive or delete the selected conversations, or undo that, and show the list again."""
    manager = services().conversations
    do = one_of("do", request.form.get("do", "")[:50], ("move", "archive", "unarchive", "delete", "restore"))
    ids = ids_of("conversation_ids", request.form.getlist("conversation_ids")[:MAX_SELECTED])
    # First check that all of them exist.
    was_in = [manager.get(one).project_id or "" for one in ids] if do != "restore" else []
    undo: dict[str, Any] = {}
    moved_to = request.form.getlist("project_ids") or [request.form.get("project_id", "")] * len(ids)
    for one, project in zip(ids, moved_to, strict=False):
        if do == "restore":
            restored(one)
        elif do == "delete":
            manager.delete(one)
            undo = {"deleted": ids}
        elif do in ("archive", "unarchive"):
            manager.change(one, archived=do == "archive")
            undo = {"archived_ids": ids} if do == "archive" else {}
        else:
            manager.change(one, project_id=_project_of(project))
            undo = {"moved": ids, "was_in": was_in}
    if shown := _project_of(request.form.get("shown_project", "")):
        return to_page("sharing_pages.project", project_id=shown, **undo)
    return to_page("sidebar.conversations", select=1, **undo)


def _project_of(text: str) -> int | None:
    """Return the project that a field names, ``None`` if it is empty. Raises InvalidRequest."""
    return ids_of("project_id", [text])[0] if text else None


@blueprint.get("/deleted", policy=READ)
def deleted() -> str:
    """Show the deleted conversations and documents, most recently deleted first."""
    trashed, older = listed_after("from", LISTED_AT_ONCE, deleted=True)
    return render_template(
        "deleted.html",
        trashed=trashed,
        trashed_documents=services().documents.trashed(LISTED_AT_ONCE),
        trashed_grids=services().grids.all(deleted=True),
        deleted_before=older,
        erased=request.args.get("erased") == "1",
        **frame(None),
    )


@blueprint.post("/deleted/<int:conversation_id>/erase", policy=ASK)
def erase(conversation_id: int) -> Response:
    """Erase a deleted conversation permanently."""
    services().eraser.erase_conversation(conversation_id, in_trash=True)
    return to_page("sidebar.deleted", erased=1)


@blueprint.post("/theme", policy=READ)
def choose_theme() -> Response:
    """Set the theme to light, dark, or the system's, and go back to the page."""
    return _back_with(THEME_COOKIE, one_of("theme", request.form.get("theme", "")[:50], THEMES))


@blueprint.post("/language", policy=READ)
def choose_language() -> Response:
    """Set the language, with ``auto`` the browser's, and go back to the page."""
    return _back_with(LANGUAGE_COOKIE, one_of("language", request.form.get("language", "")[:50], (AUTO, *LANGUAGES)))


def _back_with(cookie: str, value: str) -> Response:
    """Redirect back to the page, and store the choice."""
    came_from = urlsplit(request.referrer or "")
    back = came_from._replace(scheme="", netloc="").geturl() if came_from.netloc == request.host else ""
    # Two slashes at the beginning would lead to another host.
    response = to_address(back if back.startswith("/") and not back.startswith("//") else url_for("pages.start"))
    response.set_cookie(cookie, value, max_age=SECONDS_PER_YEAR, samesite="Lax", path=url_for("pages.start"))
    return response


@blueprint.app_template_filter()
def day(moment: datetime, *, short: bool = False) -> str:
    """Return a date in the reader's time zone: 3 September 2026, or in short 3 Sept 2026."""
    return format_date(_where_the_reader_lives(moment), "medium" if short else "long", language().locale)


@blueprint.app_template_filter()
def day_and_time(moment: datetime) -> str:
    """Return a date and time in the reader's time zone: 3 May 2026, 14:05."""
    time = format_time(_where_the_reader_lives(moment), "short", locale=language().locale)
    return f"{day(moment, short=True)}, {time}"


@blueprint.app_template_filter()
def soon_in_trash(conversation: Conversation | ListedConversation) -> datetime | None:
    """Return when a conversation moves to the trash if nobody uses it, in the last days before."""
    date = trash_date(conversation, services().settings.current)
    return date if date and date - datetime.now(UTC) < TOLD_BEFORE else None


@blueprint.app_template_filter()
def duration(seconds: float) -> str:
    """Return a duration in words: 5 minutes."""
    return format_timedelta(timedelta(seconds=seconds), locale=language().locale)


@blueprint.app_template_filter()
def group_title(title: str | date) -> str:
    """Return the heading of a part of the list: "Today", "March 2026"."""
    return gettext(title) if isinstance(title, str) else format_skeleton("yMMMM", title, locale=language().locale)


def _where_the_reader_lives(moment: datetime) -> datetime:
    return moment.astimezone(zone_named(request.cookies.get(ZONE_COOKIE)))


@blueprint.app_context_processor
def add_appearance() -> dict[str, Any]:
    """Add the reader's theme and language to the templates, also of error pages."""
    theme = request.cookies.get(THEME_COOKIE)
    return {
        "theme": theme if theme in THEMES else "system",
        "sidebar_closed": request.cookies.get(SIDEBAR_COOKIE) == "closed",
    }
