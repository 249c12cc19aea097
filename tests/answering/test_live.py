"""Following a running answer: everyone sees the same text, once, in the same order, whenever they come."""

import threading
from datetime import UTC, datetime

from rag_assistant.answering.live import LiveTurn
from rag_assistant.records import Event, Turn


def begun() -> LiveTurn:
    live = LiveTurn(Turn(1, 1, 1, "running", "Why?", "", datetime.now(UTC)))
    live.begin(Event("start", {}, 0))
    return live


def test_everyone_who_follows_gets_the_whole_text_whenever_they_come() -> None:
    live, texts = begun(), list[str]()

    def follow() -> None:
        events = list(live.follow())
        assert events[-1] == Event("end")
        texts.append("".join(event.data["text"] for event in events if event and event.name == "token"))

    threads = []
    for n in range(3000):
        if n % 300 == 0:
            threads.append(threading.Thread(target=follow))
            threads[-1].start()
        live.add(f"{n} ")
    live.finish(Event("end"))
    for thread in threads:
        thread.join(20)
    assert texts == ["".join(f"{n} " for n in range(3000))] * 10


def test_who_came_later_and_has_seen_more_gets_nothing_twice() -> None:
    live = begun()
    followed = live.follow(4, 0.05)
    assert [next(followed), next(followed)] == [Event("start", {}, 0), None]
    live.add("abc")
    live.add("def")
    assert next(followed) == Event("token", {"text": "ef"}, 6)


def test_text_that_came_between_two_reads_is_one_event() -> None:
    live = begun()
    followed = live.follow()
    assert next(followed) == Event("start", {}, 0)
    for text in ("a", "b", "c"):
        live.add(text)
    live.add_step(Event("step"))
    live.add("d")
    assert [next(followed) for _ in range(3)] == [
        Event("token", {"text": "abc"}, 3),
        Event("step"),
        Event("token", {"text": "d"}, 4),
    ]


def test_who_comes_late_gets_the_newest_figures_and_no_update() -> None:
    live = begun()
    live.begin(Event("start", {"dropped": 2}, 0))
    live.add("a")
    live.finish(Event("end"))
    assert [event and event.name for event in live.follow()] == ["start", "token", "end"]
    assert next(live.follow()) == Event("start", {"dropped": 2}, 0)
