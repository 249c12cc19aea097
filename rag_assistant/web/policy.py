"""What each route takes: one table for all of them. A route that is not in it keeps the application from being made.

What a person may read or change is decided further down, by whose it is: see storage/ownership.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from flask import Flask
from msgspec import Struct

from rag_assistant.records import Ability


class Policy(Struct, frozen=True):
    """The ability that a request must have, ``None`` for everybody.

    ``session``: no token will do; ``person``: it takes an account.
    """

    ability: Ability | None
    session: bool = False
    person: bool = False


# Only programs ask below these, whatever they say that they accept.
API = ("/api/", "/v1/")
FOR_PROGRAMS = (*API, "/mcp", "/metrics")
PUBLIC = Policy(None)
SESSION_ONLY = "Accounts are managed in a browser, by somebody who is signed in. A token cannot do this."


def _all(policy: Policy, blueprint: str, names: str) -> dict[str, Policy]:
    prefix = f"{blueprint}." if blueprint else ""
    return {f"{prefix}{name}": policy for name in names.split()}


READ, ASK, DOCUMENTS, ADMIN = Policy("read"), Policy("ask"), Policy("documents"), Policy("admin")
# What only makes sense where there are accounts.
SHARING = Policy("documents", person=True)
OWN_ACCOUNT, PEOPLE = Policy("read", session=True), Policy("admin", session=True)

POLICIES: dict[str, Policy] = {
    **_all(PUBLIC, "", "healthz readyz static versioned_static"),
    **_all(PUBLIC, "account_pages", "login sign_in setup make_first choose_password keep_password"),
    **_all(PUBLIC, "provider_pages", "begin come_back"),
    **_all(PUBLIC, "provider_pages", "begin_with_invitation"),
    **_all(READ, "", "settings_version"),
    **_all(ADMIN, "", "settings"),
    **_all(ADMIN, "model_api", "test"),
    **_all(READ, "api", "turn turn_stream versions receipt search image"),
    **_all(ASK, "api", "query query_stream stop retry regenerate choose_version change_turn erase_turn"),
    # Holds nothing of anybody's.
    **_all(PUBLIC, "openapi", "openapi_json docs"),
    **_all(PUBLIC, "help_pages", "front page"),
    **_all(PUBLIC, "installable", "manifest service_worker offline"),
    **_all(PUBLIC, "mcp", "llms_txt"),
    # Each of its tools has an ability of its own; see mcp/tools.py.
    **_all(READ, "mcp", "mcp"),
    # Says how much everybody does.
    **_all(ADMIN, "", "metrics"),
    **_all(READ, "openai", "models model response input_items"),
    **_all(ASK, "openai", "chat_completions embeddings create_response delete_response cancel_response compact"),
    **_all(READ, "ratings_api", "ratings"),
    **_all(ASK, "ratings_api", "rate unrate"),
    **_all(READ, "archive_api", "export"),
    **_all(ASK, "archive_api", "import_conversations"),
    **_all(READ, "conversations_api", "conversations conversation turns export preview operation"),
    **_all(
        ASK,
        "conversations_api",
        "new_conversation change_conversation delete_conversation restore_conversation purge_conversation clear reset "
        "compact undo edit_summary command",
    ),
    **_all(READ, "documents_api", "documents document tags text file"),
    # Names folders of the server's machine.
    **_all(ADMIN, "documents_api", "sources"),
    **_all(DOCUMENTS, "documents_api", "add add_web_page fetch_again change cancel retry delete"),
    **_all(READ, "libraries_api", "libraries"),
    **_all(SHARING, "libraries_api", "add change share delete"),
    **_all(Policy("read", person=True), "account_api", "account"),
    **_all(Policy("read", person=True), "shared_pages", "links shared"),
    **_all(Policy("ask", person=True), "shared_pages", "make revoke"),
    **_all(Policy("read", person=True), "sharing_api", "links shared"),
    **_all(Policy("ask", person=True), "sharing_api", "make revoke"),
    **_all(Policy("read", person=True), "library_pages", "libraries"),
    **_all(SHARING, "library_pages", "add change share delete"),
    **_all(READ, "pages", "start conversation turn"),
    **_all(
        ASK,
        "pages",
        "ask stop retry regenerate choose_version rename widen choices delete_conversation restore_conversation",
    ),
    **_all(READ, "document_pages", "documents document"),
    **_all(
        DOCUMENTS,
        "document_pages",
        "add_documents add_web_page fetch_again cancel retry change delete_document act_on_selected",
    ),
    **_all(READ, "source_pages", "source picture"),
    **_all(READ, "receipt_pages", "receipt curl"),
    **_all(ASK, "history_pages", "edit_summary erase mark purge"),
    **_all(READ, "rating_pages", "ratings"),
    **_all(ASK, "rating_pages", "rate"),
    **_all(READ, "sidebar", "conversations deleted choose_theme"),
    **_all(ASK, "sidebar", "erase pin"),
    **_all(READ, "settings_pages", "settings"),
    **_all(ASK, "settings_pages", "import_file"),
    **_all(ADMIN, "settings_pages", "test_connection"),
    **_all(OWN_ACCOUNT, "account_pages", "sign_out account change_password end_session end_sessions"),
    **_all(OWN_ACCOUNT, "account_pages", "make_token revoke_token"),
    **_all(OWN_ACCOUNT, "provider_pages", "begin_link unlink"),
    **_all(PEOPLE, "people_pages", "people add make_link change_role disable delete"),
}


def init_app(app: Flask) -> None:
    """Refuse to make an application that has a route without a policy."""
    missing = without_policy(rule.endpoint for rule in app.url_map.iter_rules())
    if missing:
        raise LookupError(f"web/policy.py says nothing about {', '.join(missing)}.")


def without_policy(endpoints: Iterable[str]) -> list[str]:
    """Return the endpoints about which the table says nothing."""
    return sorted(set(endpoints) - POLICIES.keys())
