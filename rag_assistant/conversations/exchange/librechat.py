"""LibreChat's export: one conversation, its messages in a list or nested below their parents. Pure."""

from typing import Any

from rag_assistant.conversations.exchange.trees import MessageTree, TreeMessage, moment, text_in

PRODUCT = "LibreChat"


def is_librechat(one: Any) -> bool:
    """Return whether this is a conversation exported by LibreChat."""
    return (
        isinstance(one, dict)
        and isinstance(one.get("conversationId"), str)
        and isinstance(one.get("messages") or one.get("messagesTree"), list)
    )


def read_librechat(one: dict[str, Any]) -> MessageTree:
    """Return a conversation; LibreChat doesn't mark the shown branch, so it is the last message's."""
    messages: dict[str, TreeMessage] = {}
    waiting: list[tuple[Any, str | None]] = [
        (message, None) for message in reversed(one.get("messages") or one["messagesTree"])
    ]
    # If branches were left out, a message may lack its parent.
    linear = one.get("branches") is False and one.get("recursive") is not True
    while waiting:
        node, above = waiting.pop()
        if not isinstance(node, dict):
            continue
        message = _message(node, above, next(reversed(messages), None) if linear else None, len(messages))
        messages[message.id] = message
        children = node.get("children")
        waiting += [(child, message.id) for child in reversed(children if isinstance(children, list) else [])]
    moments = [message.at for message in messages.values() if message.at]
    return MessageTree(
        product=PRODUCT,
        id=text_in(one["conversationId"]),
        title=text_in(one.get("title")),
        messages=messages,
        current=next(reversed(messages), None),
        created_at=min(moments, default=None),
        updated_at=max(moments, default=None),
    )


def _message(node: dict[str, Any], above: str | None, before: str | None, number: int) -> TreeMessage:
    name = text_in(node.get("messageId")) or f"message {number}"
    named = node.get("parentMessageId")
    parent = above or before or (named if isinstance(named, str) else None)
    role: Any = "user" if node.get("isCreatedByUser") is True else "assistant"
    text = text_in(node.get("text")).strip() or "\n\n".join(_parts(node.get("content")))
    if not text or node.get("error") is True:
        return TreeMessage(name, parent, "hidden")
    model = text_in(node.get("model")) or None
    return TreeMessage(name, parent, role, text, moment(node.get("createdAt")), model if role == "assistant" else None)


def _parts(content: Any) -> list[str]:
    """Return the texts among the parts of a message; reasoning and tool calls are other parts."""
    texts = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict) and part.get("type") == "text":
            text = part["text"].get("value") if isinstance(part.get("text"), dict) else part.get("text")
            texts.append(text_in(text).strip())
    return [text for text in texts if text]
