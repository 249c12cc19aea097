"""What every page shows around its content: the conversations; and whether it is whole or the drawer's content."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from flask import request
from msgspec import Struct

from rag_assistant.records import Conversation, ListedConversation
from rag_assistant.records.views import view_of
from rag_assistant.retrieval.tokenize import query_words, stem, unspaced_char
from rag_assistant.storage.conversations.conversations import Cursor
from rag_assistant.web.api.paging import cursor_of, parse_cursor
from rag_assistant.web.i18n.languages import N_
from rag_assistant.web.identity import identity
from rag_assistant.web.request_parsing import MAX_SEARCH_CHARS
from rag_assistant.web.routing import services, whole_services

PINNED = N_("Pinned")
# Headings of the list, by the days since the last use, at most.
RECENT = {0: N_("Today"), 1: N_("Yesterday"), 7: N_("Previous 7 days"), 30: N_("Previous 30 days")}
# Characters of a turn around the first matching word.
BEFORE_HIT = 40
SNIPPET = 160
# How much of a turn is searched for its first match. A page has up to fifty turns.
LOOKED_THROUGH = 50_000
MAX_ZONE_CHARS = 64

# Markup around words, and before a heading.
MARKDOWN = re.compile(r"\*\*|__|`+|^#+ ", re.MULTILINE)
WORD = re.compile(r"\w+")


class Group(Struct, frozen=True):
    """Consecutive conversations in the list under one heading: text, a project's name, or the first of a month."""

    title: str | date
    conversations: tuple[ListedConversation, ...]
    project_id: int | None = None


def groups_of(conversations: Sequence[ListedConversation], moment: datetime, zone: tzinfo) -> list[Group]:
    """Return conversations, most recently used first, grouped by day, month and year of last use."""
    today = moment.astimezone(zone).date()
    groups: list[tuple[str | date, list[ListedConversation]]] = []
    for one in conversations:
        day = one.updated_at.astimezone(zone).date()
        month = day.replace(day=1) if day.year == today.year else str(day.year)
        title = next((words for days, words in RECENT.items() if (today - day).days <= days), month)
        if not groups or groups[-1][0] != title:
            groups.append((title, []))
        groups[-1][1].append(one)
    return [Group(title, tuple(members)) for title, members in groups]


def zone_named(name: str | None) -> tzinfo:
    """Return the time zone of that name, UTC if there is none."""
    # Raised for an invalid name, a folder of zones, and on a machine without time zone data.
    with suppress(ValueError, OSError, LookupError):
        return ZoneInfo(name) if name and len(name) <= MAX_ZONE_CHARS else UTC
    return UTC


def snippet_of(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the part of a text around the first of ``words`` as pieces, each with whether it is one of them.

    Without a match, the text's beginning.
    """
    line = " ".join(MARKDOWN.sub("", text[:LOOKED_THROUGH]).split())
    first_hit = next(_hits(line, words), None)
    start = max(0, first_hit[0] - BEFORE_HIT) if first_hit else 0
    if start and first_hit:
        # Begin with a whole word if there are blanks.
        blank = line.find(" ", start, first_hit[0])
        start = blank + 1 if blank >= 0 else start
    end = min(len(line), start + SNIPPET)
    pieces: list[tuple[str, bool]] = [("… ", False)] if start else []
    position = start
    for first, last in _hits(line[:end], words, start):
        pieces += [(line[position:first], False), (line[first:last], True)]
        position = last
    more = end < len(line) or len(text) > LOOKED_THROUGH
    pieces.append((line[position:end] + (" …" if more else ""), False))
    return [piece for piece in pieces if piece[0]]


def _hits(line: str, words: Sequence[str], start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the positions in a line, from ``start`` on, of the words and their forms."""
    sought = [word.casefold() for word in words]
    stems = tuple(map(stem, sought))
    foreign = [word for word in sought if not word.isascii()]
    for match in WORD.finditer(line, start):
        text_word = match[0].casefold()
        if text_word.startswith(stems):
            yield match.span()
        elif not text_word.isascii():
            # Scripts without blanks: the word is somewhere within, even if in Latin letters.
            possible = sought if unspaced_char().search(text_word) else foreign
            hits = [(text_word.find(word), len(word)) for word in possible if word in text_word]
            if hits and len(text_word) == len(match[0]):
                first, length = min(hits)
                yield match.start() + first, match.start() + first + length


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
    "failed": N_("Nothing new can be stored; see the server log."),
}
# A script writes it.
ZONE_COOKIE = "zone"


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
        "backup_failed": identity().may_manage and services().backups.last_status.state == "failed",
        "tokens_used": services().model_limits.percent_used("tokens"),
        "budget_used": services().model_limits.percent_used("cost"),
        "low_disk": services().disk.usage() if identity().may_manage and services().disk.is_low else None,
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
    sought = "" if request.blueprint == "document_pages" else request.args.get("q", "").strip()[:MAX_SEARCH_CHARS]
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
    if shown is not None and not (shown.listed or shown.pinned or shown.project):
        place = _position(shown)
        if (before is None or place < before) and (until is None or place >= until):
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


def drawer(template: str) -> str:
    """Return the template for the drawer if a script asks for it, otherwise for a whole page."""
    return f"_{template}" if request.args.get("drawer") == "1" else template
