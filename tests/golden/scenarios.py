"""What is played: each scenario is a short story over the API, in a library of its own."""

import io
import time
from typing import Any

from tests.conversations.exchange import samples
from tests.golden.player import Player
from tests.testkit.stub_model import Reply

LAMP = "# Lighthouse\n\nThe lamp of the lighthouse burns rapeseed oil. It is trimmed every four hours by the keeper."
FERRY = "# Ferry\n\nThe ferry leaves the harbour at nine. It takes forty cars and two hundred people to the island."
LONG = "It was told at some length, so that a summary of it can be shorter than what it stands for. " * 3


def ask(player: Player, question: str, **fields: Any) -> Any:
    return player.play("POST", "/api/query", {"question": question} | fields)


def talk(player: Player, turns: int) -> int:
    """Begin a conversation of some turns and return its id; only the last is worth recording."""
    conversation = player.client.post("/api/conversations", json={}).json["conversation_id"]
    for n in range(1, turns + 1):
        player.client.post("/api/query", json={"question": f"Question {n}. {LONG}", "conversation_id": conversation})
    return int(conversation)


def questions(player: Player) -> None:
    player.upload(LAMP, "lamp.md")
    player.upload(FERRY, "ferry.txt", tags="sea, travel")
    player.replies("It burns rapeseed oil [1].", "Every four hours [1][9].")
    first = ask(player, "What does the lamp of the lighthouse burn?")
    conversation = first["conversation_id"]
    ask(player, "And how often is it trimmed?", conversation_id=conversation)
    player.replies("At nine [1].")
    player.play("POST", "/api/query/stream", {"query": "When does the ferry leave?", "tags": ["sea"]})
    about_the_ferry = {"question": "Which cars?", "max_history_turns": 0, "document_ids": [2]}
    player.play("POST", "/api/query/stream?html=1", about_the_ferry)
    ask(player, "Zebra quokka?", conversation_id=conversation)
    player.play("GET", f"/api/turns/{first['turn_id']}")
    player.play("GET", f"/api/turns/{first['turn_id']}/images/1")
    player.play("GET", f"/api/turns/{first['turn_id']}/stream", headers={"Last-Event-ID": "5"})
    for turn in (1, 2, 3):
        player.play("GET", f"/api/turns/{turn}/receipt")
    player.play("GET", "/turns/1/receipt.sh")
    player.play("GET", f"/api/search?q=ferry+island&limit=3&conversation_id={conversation}")
    player.play("GET", "/api/search?q=lamp&tag=sea")


def window(player: Player) -> None:
    conversation = talk(player, 7)
    path = f"/api/conversations/{conversation}"
    ask(player, "And now?", conversation_id=conversation)
    ask(player, "And all?", conversation_id=conversation, max_history_turns=None)
    player.play("GET", f"{path}/preview?max_history_turns=3")
    player.play("GET", f"{path}/preview?strategy=smart")
    player.play("PATCH", "/api/turns/2", {"pinned": True})
    player.play("PATCH", "/api/turns/8", {"excluded": True})
    player.play("PATCH", path, {"max_history_turns": 2, "history_strategy": "window", "on_overflow": "trim"})
    answer = ask(player, "With a pin?", conversation_id=conversation)
    player.play("GET", f"/api/turns/{answer['turn_id']}/receipt")
    player.play("POST", f"{path}/clear", {})
    ask(player, "Cleared?", conversation_id=conversation)
    player.play("POST", f"{path}/undo", {})
    player.play("POST", f"{path}/reset", {})
    player.play("POST", f"{path}/undo", {})
    player.play("GET", f"{path}/turns?limit=2")
    player.play("GET", f"{path}/turns?limit=2&cursor=4")
    for command in ("/help", "/history", "/clear-history", "/undo", "/clear", "/undo", "/nonsense"):
        player.play("POST", f"{path}/commands", {"command": command})


def overflow(player: Player) -> None:
    conversation = talk(player, 7)
    path = f"/api/conversations/{conversation}"
    about = {"conversation_id": conversation}
    ask(player, "Asked?", **about, on_overflow="ask")
    player.play("POST", "/api/query/stream", {"question": "Asked?", "on_overflow": "ask"} | about)
    player.replies("They spoke of questions 1 to 5.", "Summarised.")
    answer = ask(player, "Summarise.", **about, on_overflow="compact")
    player.play("GET", f"/api/turns/{answer['turn_id']}/receipt")
    player.play("GET", path)
    player.play("GET", f"{path}/operation")
    player.play("PUT", f"{path}/summary", {"text": "They spoke of much."})
    player.play_to_its_end(f"/api/turns/{answer['turn_id']}/regenerate", answer["turn_id"])
    player.play("POST", f"{path}/undo", {})
    player.play("POST", f"{path}/undo", {})
    ask(player, "Everything.", **about, on_overflow="continue")
    ask(player, "Start over.", **about, on_overflow="reset")
    player.play("GET", f"{path}/export?format=json")
    player.play("GET", f"{path}/export?format=markdown")
    player.replies("Short.")
    player.play("POST", f"{path}/undo", {})
    player.play("GET", f"{path}/compact")
    player.play("POST", f"{path}/compact", {})
    player.play("DELETE", f"{path}/summary")


def tools(player: Player) -> None:
    player.upload(LAMP, "lamp.md")
    player.upload(FERRY, "ferry.txt")
    search = {"id": "a", "name": "search_documents", "arguments": {"query": "ferry"}}
    listing = {"id": "b", "name": "list_documents", "arguments": {}}
    player.replies(Reply(tool_calls=[search, listing]), Reply(tool_calls=[search]), "At nine [1].")
    player.play("POST", "/api/query/stream", {"question": "When does it leave?"})
    earlier = [{"question": "Is there a ferry?", "answer": "Yes."}]
    player.play("POST", "/api/query/temporary?html=1", {"question": "When does it leave?", "earlier": earlier})
    player.play("GET", "/api/turns/1")
    player.play("GET", "/api/turns/1/receipt")
    delete = {"id": "d", "name": "delete_documents", "arguments": {"document_ids": [1]}}
    player.replies(Reply(tool_calls=[delete]))
    ask(player, "Delete the lamp.", conversation_id=1)
    ask(player, "yes", conversation_id=1)
    ask(player, "What is left?", conversation_id=1)
    player.replies(Reply(tool_calls=[{"id": "e", "name": "read_document", "arguments": "{nonsense"}]), "No.")
    ask(player, "Read it.", conversation_id=1)
    player.play("GET", "/api/turns/5/receipt")
    ask(player, "Confirmed?", conversation_id=1, confirms_turn=1)


def trouble(player: Player) -> None:
    player.replies(Reply(status=401), "Now.")
    failed = ask(player, "Why?")
    player.play("GET", "/api/turns/1")
    player.play_to_its_end("/api/turns/1/retry", 1)
    player.play("POST", "/api/turns/1/retry", {})
    player.replies(Reply("It broke off in the middle of it.", break_at=3))
    ask(player, "And then?", conversation_id=1)
    player.play("GET", "/api/turns/2/receipt")
    player.replies(Reply(""))
    ask(player, "Nothing?", conversation_id=1)
    player.play("POST", "/api/turns/2/stop", {})
    player.play("POST", "/api/turns/99/stop", {})
    player.play("POST", "/api/turns/2/regenerate", {})
    keyed = {"Idempotency-Key": "k1"}
    player.play("POST", "/api/query", {"question": "Once."}, headers=keyed)
    player.play("POST", "/api/query", {"question": "Once."}, headers=keyed)
    player.play("POST", "/api/query", {"question": "Another."}, headers=keyed)
    assert failed["error"]["type"]


def refusals(player: Player) -> None:
    for body in (
        {}, {"question": ""}, {"question": 5}, {"question": "x" * 9000}, {"question": "x", "speed": 3},
        {"question": "x", "conversation_id": 99}, {"question": "x", "max_history_turns": -1},
        {"question": "x", "max_history_turns": 1.5}, {"question": "x", "on_overflow": "explode"},
        {"question": "x", "document_ids": [99]}, {"question": "x", "tags": ["nosuch"]},
        {"question": "x", "edits_turn": 99}, {"question": "x", "confirms_turn": 1},
    ):  # fmt: skip
        player.play("POST", "/api/query", body)
    player.play("POST", "/api/query/stream", {"question": "x", "conversation_id": 99})
    player.play("GET", "/api/query")
    player.play("GET", "/api/nothing")
    for path in ("conversations/99", "documents/99", "turns/99", "turns/99/receipt", "turns/99/versions"):
        player.play("GET", f"/api/{path}")
    player.play("GET", "/api/search")
    player.play("GET", "/api/conversations?cursor=abc")
    player.play("GET", "/api/documents?limit=0")


def conversations(player: Player) -> None:
    made = player.play("POST", "/api/conversations", {"title": "Lamps"})
    path = f"/api/conversations/{made['conversation_id']}"
    player.replies("First.", "Second.")
    first = ask(player, "What is a lamp?", conversation_id=made["conversation_id"])
    turn = f"/api/turns/{first['turn_id']}"
    player.play_to_its_end(f"{turn}/regenerate", first["turn_id"])
    player.play("GET", f"{turn}/versions")
    player.play("POST", f"{turn}/versions/1/choose", {})
    ask(player, "What is a torch?", conversation_id=made["conversation_id"], edits_turn=first["turn_id"])
    player.play("GET", "/api/conversations")
    player.play("GET", "/api/conversations?q=torch")
    player.play("PATCH", path, {"title": "Torches", "pinned": True})
    player.play("GET", "/api/conversations?pinned=1&limit=1")
    player.play("GET", path)
    player.play("DELETE", path)
    player.play("GET", path)
    player.play("GET", "/api/conversations?deleted=1")
    player.play("POST", f"{path}/restore", {})
    player.play("POST", f"{path}/purge", {})
    player.play("GET", "/api/conversations")


def erasing(player: Player) -> None:
    first = ask(player, "What is the password?")
    player.replies("It is hidden in the lamp.")
    second = ask(player, "Where is it?", conversation_id=first["conversation_id"])
    turn = f"/api/turns/{first['turn_id']}"
    player.play("DELETE", turn)
    player.play("DELETE", f"{turn}?permanently=1")
    player.play("GET", f"/api/conversations/{first['conversation_id']}/turns")
    player.play("GET", f"/api/turns/{second['turn_id']}/receipt")
    player.play("GET", f"{turn}/receipt")
    player.play("PATCH", turn, {"pinned": True})
    player.play("DELETE", "/api/turns/99?permanently=1")


def ratings(player: Player) -> None:
    player.upload(FERRY, "ferry.txt")
    player.replies("At nine [1].", "At ten [1].", "Forty cars [1].")
    first = ask(player, "When does the ferry leave?")
    turn = f"/api/turns/{first['turn_id']}"
    player.play("PUT", f"{turn}/rating", {"rating": "up"})
    player.play_to_its_end(f"{turn}/regenerate", first["turn_id"])
    player.play("PUT", f"{turn}/rating", {"rating": "down", "right_answer": " At nine. "})
    second = ask(player, "How many cars?", conversation_id=first["conversation_id"])
    player.play("PUT", f"/api/turns/{second['turn_id']}/rating", {"rating": "up"})
    player.play("GET", "/api/ratings?limit=1")
    player.play("GET", f"/api/ratings?cursor={second['turn_id']}")
    player.play("GET", f"/api/conversations/{first['conversation_id']}/export?format=markdown")
    player.play("DELETE", f"/api/turns/{second['turn_id']}/rating")
    player.play("PUT", f"{turn}/rating", {"rating": "sideways"})
    player.play("PUT", "/api/turns/99/rating", {"rating": "up"})
    player.play("GET", "/api/ratings")


def notes(player: Player) -> None:
    player.replies("At nine.", "At nine.", "At nine.")
    turn = ask(player, "When does the ferry leave?")
    text = "The ferry leaves at nine."
    player.play("POST", "/api/notes", {"text": text, "turn_id": turn["turn_id"]})
    player.play("POST", "/api/notes", {"text": " "})
    ask(player, "When does the ferry leave, by my notes?", search_conversations="mine")
    player.play("PATCH", "/api/notes/1", {"text": "The ferry leaves at ten.", "pinned": True})
    player.play("PATCH", "/api/notes/2", {"active": False})
    player.play("GET", "/api/notes")
    player.play("DELETE", "/api/notes/1")
    player.play("DELETE", "/api/notes/1")


def projects(player: Player) -> None:
    body = {"name": "Harbour", "instructions": "Answer in one sentence.", "max_history_turns": 1}
    project = player.play("POST", "/api/projects", body)
    path = f"/api/projects/{project['project_id']}"
    player.replies("At nine.", "At ten.")
    first = ask(player, "When does the ferry leave?", project_id=project["project_id"])
    player.play("GET", f"/api/turns/{first['turn_id']}/receipt")
    player.play("PATCH", path, {"name": "Port", "on_overflow": "reset", "max_history_turns": None})
    player.play("PATCH", path, {"everyone": "all"})
    player.play("PUT", f"{path}/shares", {"person": "ben", "access": "read"})
    player.play("GET", path)
    player.play("GET", "/api/projects")
    player.play("DELETE", path)
    player.play("GET", path)
    player.play("GET", f"/api/conversations/{first['conversation_id']}")


def grids(player: Player) -> None:
    document = player.upload(LAMP, "lamp.md")
    columns = [{"question": "How high is the lamp?", "name": "Height", "type": "number"}]
    grid = player.play("POST", "/api/grids", {"name": "Lamps", "columns": columns})
    path = f"/api/grids/{grid['grid_id']}"
    player.play("POST", "/api/grids", {"name": "None", "columns": []})
    player.play("PATCH", path, {"max_tokens": 5000, "cells_at_once": 1})
    player.play("PUT", f"{path}/shares", {"person": "ben", "access": "read"})
    player.play("GET", f"{path}/rows?sort=-1")
    player.play("GET", f"{path}/cells/{document}/1")
    player.play("GET", f"{path}/export")
    player.play("GET", "/api/grids")
    player.play("POST", f"{path}/stop", {})
    player.play("DELETE", path)
    player.play("GET", path)
    player.play("POST", f"{path}/restore", {})
    player.play("POST", f"{path}/cells/{document}/9/again", {})
    player.play("DELETE", path)
    player.play("POST", f"{path}/start", {})
    player.play("POST", f"{path}/erase", {})


def documents(player: Player) -> None:
    document = player.upload(LAMP, "lamp.md", tags="light")
    path = f"/api/documents/{document}"
    player.play("GET", f"{path}/text")
    player.play("GET", f"{path}/file")
    player.play("PATCH", path, {"name": "lantern.md", "tags": ["light", "old"]})
    player.play("GET", "/api/documents?tag=old&q=lan")
    player.play("GET", "/api/documents/tags")
    player.play("GET", "/api/documents/report")
    newer = {"file": (io.BytesIO(LAMP.replace("four", "five").encode()), "lamp.md"), "replaces": str(document)}
    player.client.post("/api/documents", data=newer)
    while "five" not in player.client.get(f"{path}/text").text:
        time.sleep(0.01)
    player.play("GET", "/api/documents")
    player.play("POST", f"{path}/cancel", {})
    player.play("DELETE", path)
    player.play("GET", path)
    player.play("POST", "/api/documents", {})
    player.play("POST", "/api/documents/archive", {})
    player.play("POST", "/api/documents/2/retry", {})
    player.play("GET", "/api/documents/sources")
    player.play("GET", "/api/use")
    player.play("POST", "/api/documents/web-page", {"url": "https://example.org/"})
    player.play("POST", "/api/documents/2/fetch", {})


def server(player: Player) -> None:
    while not player.client.get("/readyz").json["ready"]:
        time.sleep(0.01)
    player.play("GET", "/healthz")
    player.play("GET", "/readyz")
    player.play("GET", "/api/settings")
    player.play("POST", "/api/model/test")


def libraries(player: Player) -> None:
    """Alone there is one, and nobody to share it with."""
    player.play("GET", "/api/libraries")
    player.play("POST", "/api/libraries", {"name": "More"})
    player.play("PATCH", "/api/libraries/1", {"everyone": "read"})
    player.play("PUT", "/api/libraries/1/shares", {"person": "Ben", "access": "read"})
    player.play("DELETE", "/api/libraries/1")


def sharing(player: Player) -> None:
    """Alone there is nobody to be, and nobody to share with."""
    player.play("GET", "/api/account")
    player.play("GET", "/api/conversations/1/links")
    player.play("POST", "/api/conversations/1/links", {"with_sources": True})
    player.play("GET", "/api/shared/conversations")
    player.play("DELETE", "/api/conversations/1/links/1")
    player.play("GET", "/api/shared?link=secret")


def importing(player: Player) -> None:
    player.play("POST", "/api/conversations/import", samples.open_webui())
    player.play("POST", "/api/conversations/import", samples.open_webui())
    player.play("POST", "/api/conversations/import", {"geese": []})
    player.play("GET", "/api/conversations/1/turns")
    player.play("GET", "/api/export?files=all")


SCENARIOS = (
    questions,
    window,
    overflow,
    tools,
    trouble,
    refusals,
    conversations,
    erasing,
    ratings,
    notes,
    projects,
    grids,
    documents,
    libraries,
    sharing,
    importing,
    server,
)
