"""Open WebUI's export: a list of chats, each with its tree of messages in ``chat.history``. Pure."""

import re
from typing import Any

from rag_assistant.conversations.exchange.trees import MessageTree, TreeMessage, moment, text_in

PRODUCT = "Open WebUI"
# What the page folds: reasoning and tool calls, written into the answer. One pattern for both would scan the rest of a
# text again for each unterminated beginning.
FOLDED = re.compile(r'<details type="(?:reasoning|tool_calls|code_interpreter)"')
FOLDED_END = re.compile(r"</details>\s*")


def is_open_webui(one: Any) -> bool:
    """Return whether this is a chat of Open WebUI's export."""
    return isinstance(one, dict) and isinstance(_messages(one), dict)


def read_open_webui(one: dict[str, Any]) -> MessageTree:
    """Return a chat without reasoning and tool calls, which are part of its answers there."""
    inner = _inner(one)
    current = inner["history"].get("currentId")
    nodes = {name: node for name, node in _messages(one).items() if isinstance(node, dict)}
    return MessageTree(
        product=PRODUCT,
        id=text_in(one.get("id")) or f"{one.get('title')}, {one.get('created_at')}",
        title=text_in(one.get("title")) or text_in(inner.get("title")),
        messages={name: _message(name, node) for name, node in nodes.items()},
        current=current if isinstance(current, str) else None,
        created_at=moment(one.get("created_at")) or moment(inner.get("timestamp")),
        updated_at=moment(one.get("updated_at")),
        pinned=one.get("pinned") is True,
        archived=one.get("archived") is True,
    )


def _inner(one: dict[str, Any]) -> dict[str, Any]:
    """Return the chat inside its record; older exports had it alone."""
    inner = one.get("chat")
    return inner if isinstance(inner, dict) else one


def _messages(one: dict[str, Any]) -> Any:
    history = _inner(one).get("history")
    return history.get("messages") if isinstance(history, dict) else None


def _message(name: str, node: dict[str, Any]) -> TreeMessage:
    parent = node["parentId"] if isinstance(node.get("parentId"), str) else None
    role = node.get("role")
    text = _without_folded(text_in(node.get("content"))).strip()
    if role not in ("user", "assistant") or not text:
        return TreeMessage(name, parent, "hidden")
    model = text_in(node.get("model")) or None
    return TreeMessage(name, parent, role, text, moment(node.get("timestamp")), model if role == "assistant" else None)


def _without_folded(text: str) -> str:
    parts, at = [], 0
    while (begin := FOLDED.search(text, at)) and (end := FOLDED_END.search(text, begin.end())):
        parts.append(text[at : begin.start()])
        at = end.end()
    return "".join([*parts, text[at:]])
