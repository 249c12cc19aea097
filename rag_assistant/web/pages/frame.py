"""What every page shows around its content, and whether it is a whole page or the drawer's content."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from flask import request
from msgspec import Struct

from rag_assistant.records import Conversation, ListedConversation
from rag_assistant.records.views import view_of
from rag_assistant.retrieval.tokenize import query_words
from rag_assistant.storage.conversations.conversations import Cursor
from rag_assistant.web.api.paging import cursor_of, parse_cursor
from rag_assistant.web.i18n.languages import N_
from rag_assistant.web.identity import identity
from rag_assistant.web.pages.conversation_list import PINNED, Group, groups_of, snippet_of, zone_named
from rag_assistant.web.services import services, whole_services

CONVERSATIONS_SHOWN = 50
CONVERSATIONS_FOUND = 50
PASSAGES_FOUND = 10
# The others of a project are on its page.
IN_A_PROJECT = 5
# A refreshed part of the list also contains what has been added to it meanwhile.
MAX_IN_A_PART = 200
MAX_PINNED_DRAWN = 1000

# By the state of the database, while a write fails.
DATABASE_PROBLEMS = {
    "full": N_("The disk is full, so nothing new is stored. Free some space."),
    "locked": N_("Another program keeps the database locked, so nothing new is stored."),
    "failed": N_("Nothing new can be stored; see the server's log."),
}
# A script writes it.
ZONE_COOKIE = "zone"


class Shortcut(Struct, frozen=True):
    """A keyboard shortcut on every page: ``keys`` as in KeyboardEvent, ``action`` as in shortcuts.js."""

    keys: str
    action: str
    does: str


SHORTCUTS = (
    Shortcut("?", "shortcuts", N_("Show these shortcuts")),
    Shortcut("/", "command", N_("Type a command")),
    Shortcut("Control+K", "search", N_("Search conversations")),
    Shortcut("Control+Shift+O", "new", N_("New conversation")),
    Shortcut("Alt+ArrowUp", "previous-turn", N_("Previous turn")),
    Shortcut("Alt+ArrowDown", "next-turn", N_("Next turn")),
    Shortcut("Alt+PageUp", "previous-conversation", N_("Previous conversation in the list")),
    Shortcut("Alt+PageDown", "next-conversation", N_("Next conversation in the list")),
    Shortcut("Control+Shift+C", "copy", N_("Copy the last answer")),
    Shortcut("Control+Shift+S", "sidebar", N_("Show or hide the sidebar")),
    Shortcut("Control+Shift+D", "documents", N_("Open documents")),
    Shortcut("Control+,", "settings", N_("Open settings")),
    Shortcut("Escape", "", N_("Close dialog, menu or panel")),
)


def frame(shown: Conversation | None) -> dict[str, Any]:
    """Return what every page shows around its content; ``shown`` is its conversation."""
    models, embedders = services().models, services().embedders
    return {
        "conversation": shown,
        "model_connected": models.connected,
        # A notice stays dismissed in this browser; see js/shell/notices.js.
        "quotes_notice": not models.connected and "quotes" not in request.cookies.get("dismissed", ""),
        "unreachable": models.known_endpoint().base_url if models.state == "unreachable" else None,
        "database_problem": DATABASE_PROBLEMS.get(whole_services().write_probe.state()),
        "embedder_problem": None if embedders.loaded else embedders.problem,
        "model_starting": models.state in ("starting", "slow"),
        "settings_problem": services().settings.problem if identity().may_manage else None,
        "restart_required": services().settings.restart_required if identity().may_manage else (),
        "settings_path": services().settings.path,
        "settings_version": services().settings.version,
        "settings": services().settings.current,
    } | listed(shown)


def listed(shown: Conversation | None) -> dict[str, Any]:
    """Return the conversations for the sidebar: the latest, a later part of the list, or search results.

    ``shown``, the open one, is always included in its place.
    """
    in_projects = [Group(name, tuple(some), number) for number, name, some in services().projects.groups(IN_A_PROJECT)]
    # The same parameter searches the library on its own page.
    sought = "" if request.blueprint == "document_pages" else request.args.get("q", "").strip()
    if sought:
        words = query_words(sought)
        hits = services().conversations.find(words, CONVERSATIONS_FOUND, typing=True)
        hit_rows = [
            {"conversation": hit.conversation, "turn": hit.turn, "snippet": snippet_of(hit.text, words)} for hit in hits
        ]
        passages = services().retriever.search(sought, PASSAGES_FOUND)
        snippets = [(one, snippet_of(one.text, words)) for one in passages]
        # Semantic matches are for questions only.
        in_documents = [(one, snippet) for one, snippet in snippets if any(is_hit for _, is_hit in snippet)]
        results = {"sought": sought, "hits": hit_rows, "in_documents": in_documents, "projects": in_projects}
        return results | {"conversation_groups": [], "older_conversations": None}
    # Other lists have such cursors, too.
    own = request.endpoint == "sidebar.conversations"
    before, until = (parse_cursor(name, request.args.get(name) if own else None) for name in ("from", "until"))
    manager = services().conversations
    entries = partial(manager.entries, pinned=False, outside=[one.project_id for one in in_projects if one.project_id])
    limit = MAX_IN_A_PART if until else CONVERSATIONS_SHOWN
    page = entries(limit + 1, before, until)
    if shown is not None and not (shown.listed or shown.pinned or shown.project) and _is_between(shown, before, until):
        page = sorted([*page, view_of(ListedConversation, shown)], key=_position, reverse=True)[: limit + 1]
    groups = groups_of(page[:limit], datetime.now(UTC), zone_named(request.cookies.get(ZONE_COOKIE)))
    if before is None:
        pinned = manager.entries(MAX_PINNED_DRAWN, pinned=True)
        groups = [*([Group(PINNED, tuple(pinned))] if pinned else []), *in_projects, *groups]
    more = len(page) > limit
    last = cursor_of(page[limit - 1].updated_at, page[limit - 1].id) if more else None
    # A list requested up to a cursor continues after it.
    older = last or (request.args.get("until") if until and entries(1, until) else None)
    lists = {"conversation_groups": groups, "older_conversations": older, "projects": in_projects}
    return {"sought": "", "hits": []} | lists


def _position(one: Conversation | ListedConversation) -> Cursor:
    return one.updated_at, one.id


def _is_between(one: Conversation, before: Cursor | None, until: Cursor | None) -> bool:
    return (before is None or _position(one) < before) and (until is None or _position(one) >= until)


def drawer(template: str) -> str:
    """Return the template for the drawer if a script asks for it, otherwise for a whole page."""
    return f"_{template}" if request.args.get("drawer") == "1" else template
