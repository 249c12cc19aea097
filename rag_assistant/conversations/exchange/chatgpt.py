"""ChatGPT's export: ``conversations.json``, a list of conversations, each a tree of nodes (``mapping``). Pure."""

import re
from collections.abc import Iterator
from typing import Any

from rag_assistant.conversations.exchange.trees import MessageTree, TreeMessage, moment, text_in

PRODUCT = "ChatGPT"
# Markup for a source, or a name with a link, between private use characters.
DRAWN = re.compile(
    "\\s?\ue200(?P<kind>[^\ue200-\ue202]*+)(?P<rest>[^\ue200\ue201]*)\ue201|\u3010[\\d:]+\u2020[^\u3011\\n]{0,200}\u3011"
)
NAMED = re.compile(r'\["[^"]*", ?"([^"]*)"')


def is_chatgpt(one: Any) -> bool:
    """Return whether this is a conversation of ChatGPT's export."""
    return isinstance(one, dict) and isinstance(one.get("mapping"), dict)


def read_chatgpt(one: dict[str, Any]) -> MessageTree:
    """Return a conversation without what ChatGPT doesn't show (instructions, tools, reasoning)."""
    model = text_in(one.get("default_model_slug")) or None
    nodes = {name: node for name, node in one["mapping"].items() if isinstance(node, dict)}
    return MessageTree(
        product=PRODUCT,
        id=text_in(one.get("conversation_id") or one.get("id")) or f"{one.get('title')}, {one.get('create_time')}",
        title=text_in(one.get("title")),
        messages={name: _message(name, node, model) for name, node in nodes.items()},
        current=one.get("current_node") if isinstance(one.get("current_node"), str) else None,
        created_at=moment(one.get("create_time")),
        updated_at=moment(one.get("update_time")),
        pinned=one.get("is_starred") is True,
        archived=one.get("is_archived") is True,
    )


def _message(name: str, node: dict[str, Any], default_model: str | None) -> TreeMessage:
    parent = node["parent"] if isinstance(node.get("parent"), str) else None
    message = node.get("message")
    if not isinstance(message, dict) or (role := _shown_role(message)) is None:
        return TreeMessage(name, parent, "hidden")
    text = DRAWN.sub(_name_in, "\n\n".join(_texts(message.get("content")))).strip()
    if not text:
        return TreeMessage(name, parent, "hidden")
    model = text_in(_dict(message.get("metadata")).get("model_slug")) or default_model
    return TreeMessage(
        name, parent, role, text, moment(message.get("create_time")), model if role == "assistant" else None
    )


def _name_in(drawn: re.Match[str]) -> str:
    """Return the shown name, nothing for a source, whose target isn't in the export."""
    named = NAMED.search(drawn["rest"] or "") if drawn["kind"] == "entity" else None
    return f" {named[1]}" if named else ""


def _shown_role(message: dict[str, Any]) -> Any:
    role = _dict(message.get("author")).get("role")
    hidden = _dict(message.get("metadata")).get("is_visually_hidden_from_conversation")
    for_a_tool = message.get("recipient") not in (None, "all") or message.get("channel") in ("analysis", "commentary")
    return role if role in ("user", "assistant") and not hidden and not for_a_tool else None


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts of a message; a picture or file is named in brackets."""
    if not isinstance(content, dict) or content.get("content_type") not in ("text", "multimodal_text", "code"):
        return
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        if isinstance(part, str) and part.strip():
            yield text_in(part)
        elif isinstance(part, dict):
            kind = text_in(part.get("content_type"))
            yield text_in(part.get("text")) or f"[{kind.replace('_', ' ') or 'attachment'}]"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
