"""Files as other products export them, written by hand: the structure is theirs, nothing else."""

from typing import Any

MADE = 1_716_000_000.25


def node(name: str, parent: str | None, role: str = "", text: str = "", **more: Any) -> dict[str, Any]:
    """Return a node of ChatGPT's tree; without a role, one without a message."""
    message = None
    if role:
        message = {
            "id": name,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": MADE + int(name[1:]),
            "content": {"content_type": "text", "parts": [text]},
            "status": "finished_successfully",
            "metadata": {"model_slug": "gpt-5"} if role == "assistant" else {},
            "recipient": "all",
            "channel": None,
        } | more
    return {"id": name, "message": message, "parent": parent, "children": []}


def chatgpt() -> list[Any]:
    """A conversation whose second question was edited and whose edited one was answered twice; a broken entry."""
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    thought = {"content": {"content_type": "thoughts", "thoughts": []}, "channel": "analysis"}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://1"}
    nodes = [
        node("n0", None),
        node("n1", "n0", "system", "", **hidden),
        node("n2", "n1", "user", content={"content_type": "multimodal_text", "parts": [picture, "What do geese do?"]}),
        node("n3", "n2", "assistant", "", **thought),
        node("n4", "n3", "assistant", "They hiss."),
        node("n5", "n4", "user", "And ducks?"),
        node("n6", "n5", "assistant", "They quack."),
        node("n7", "n4", "user", "And swans?"),
        node("n8", "n7", "assistant", "search('swans')", recipient="web"),
        node("n9", "n8", "tool", "Swans are silent."),
        node("n10", "n9", "assistant", "They are silent."),
        node("n11", "n7", "assistant", "They trumpet."),
    ]
    return [
        {
            "title": "Birds",
            "create_time": MADE,
            "update_time": MADE + 60,
            "mapping": {one["id"]: one for one in nodes},
            "current_node": "n10",
            "conversation_id": "c-1",
            "default_model_slug": "gpt-5",
            "is_starred": True,
            "id": "c-1",
        },
        {"title": "Broken", "create_time": MADE, "id": "c-2"},
    ]


def open_webui() -> list[Any]:
    """A chat whose answer was regenerated; the first answer holds a folded thought."""

    def said(name: str, parent: str | None, role: str, content: str, at: int, **more: Any) -> dict[str, Any]:
        place: dict[str, Any] = {"id": name, "parentId": parent, "childrenIds": []}
        return place | {"role": role, "content": content, "timestamp": at} | more

    thought = '<details type="reasoning" done="true" duration="2">\n<summary>Thought</summary>\n&gt; Hm\n</details>\n'
    messages = [
        said("a", None, "user", "What do geese do?", 1_716_000_000),
        said("b", "a", "assistant", f"{thought}They hiss.", 1_716_000_005, model="llama3", done=True),
        said("c", "a", "assistant", "They honk.", 1_716_000_009, model="qwen3", done=True),
    ]
    return [
        {
            "id": "w-1",
            "user_id": "u",
            "title": "Geese",
            "chat": {
                "title": "Geese",
                "models": ["llama3"],
                "history": {"currentId": "c", "messages": {one["id"]: one for one in messages}},
            },
            "created_at": 1_716_000_000,
            "updated_at": 1_716_000_010,
            "pinned": False,
            "archived": True,
            "meta": {},
        }
    ]
