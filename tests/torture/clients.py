"""Clients that leave, come back, ask again under the same key, and ask all at once."""

import contextlib
import http.client
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

from tests.testkit.server_process import ServerProcess
from tests.torture.asking import Asked, check_all, half_read
from tests.torture.echo import Echo, answer_to
from tests.torture.stage import Outcome, Stage, check_database, rows, start_again, until

CLIENTS = 8
TABS = 8
TRIES_OF_A_KEY = 4
MAX_BYTES_READ = 6000
SECONDS_BETWEEN_WORDS = 0.002
MAX_SECONDS_BETWEEN_TRIES = 0.05
CONVERSATION_TIMEOUT_SECONDS = 60.0


def gone(stage: Stage) -> Outcome:
    """Leave a stream after a random byte, with FIN and with RST; each answer is written to its end all the same."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    server = stage.server(stub.url)
    server.start("/readyz")
    numbers = list(stage.rounds(24, 500))
    cuts = {number: (stage.chance.randrange(1, MAX_BYTES_READ), number % 2 == 1) for number in numbers}
    with ThreadPoolExecutor(CLIENTS) as pool:
        came = dict(
            zip(numbers, pool.map(lambda n: half_read(server, n, cuts[n][0], reset=cuts[n][1]), numbers), strict=True)
        )
    until(lambda: not rows(server, "SELECT id FROM turns WHERE status = 'running'"), 30)
    kept = answers_of(server)
    for number in numbers:
        if came[number] and f"Question {number}" not in kept:
            outcome.lost.append(f"question {number} was accepted and is not there")
        elif came[number] and kept[f"Question {number}"] != answer_to(number):
            outcome.lost.append(f"question {number}: {kept[f'Question {number}']!r} is kept")
    outcome.tried = len(numbers)
    check_database(server, outcome)
    return outcome


def resume(stage: Stage) -> Outcome:
    """Pick an answer up from each position: while it is written, afterwards, and after a kill."""
    stub = stage.echo(SECONDS_BETWEEN_WORDS)
    server = stage.server(stub.url)
    server.start("/readyz")
    return follow_from_everywhere(stage, stub, server, [server])


def follow_from_everywhere(stage: Stage, stub: Echo, server: ServerProcess, others: list[ServerProcess]) -> Outcome:
    """Ask one server and pick its answer up from each position through others, one after the other."""
    outcome, whole = Outcome(), answer_to(1)
    step = 1 if stage.is_full else 7

    def follow(turn_id: int, positions: range, when: str) -> None:
        with ThreadPoolExecutor(CLIENTS) as pool:
            rests = pool.map(lambda one, n: one.follow(turn_id, n).read().text, cycle(others), positions)
        for position, rest in zip(positions, rests, strict=True):
            if rest != whole[position:]:
                outcome.wrong.append(f"{when}, from {position}: {rest!r}")
        outcome.tried += len(positions)

    stream = server.stream("Question 1")
    assert stream.turn_id is not None
    stub.default.seconds_between = 0.0
    follow(stream.turn_id, range(0, len(whole) // 2, step), "while it was written")
    if stream.read().text != whole:
        outcome.wrong.append(f"the first reader got {stream.text!r}")
    for again in stage.rounds(1, 10):
        follow(stream.turn_id, range(again % step, len(whole) + 1, step), "afterwards")
    server.kill()
    start_again(server, outcome)
    follow(stream.turn_id, range(0, len(whole) + 1, step), "after a kill")
    return outcome


def retries(stage: Stage) -> Outcome:
    """Ask under one key from four threads, lose responses at random bytes, kill the server now and then."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url)
    server.start("/readyz")
    between_kills = stage.count(10, 250)
    killed: set[int] = set()
    calls: Counter[int] = Counter()
    for number in stage.rounds(20, 2500):
        cuts = [stage.chance.randrange(MAX_BYTES_READ) for _ in range(TRIES_OF_A_KEY)]
        kill = number % between_kills == between_kills - 1
        with ThreadPoolExecutor(TRIES_OF_A_KEY) as pool:
            for cut in cuts:
                pool.submit(half_read, server, number, cut, reset=cut % 2 == 1)
            if kill:
                time.sleep(stage.chance.uniform(0, MAX_SECONDS_BETWEEN_TRIES))
                server.kill()
                killed.add(number)
        if kill:
            start_again(server, outcome)
        asked = Asked(server, number)
        asked.ask()
        if asked.stream is None or asked.stream.turn_id is None:
            outcome.lost.append(f"question {number} got no turn in the end")
        calls += stub.calls()
        outcome.tried += TRIES_OF_A_KEY
    for number, times in calls.items():
        if times > 1:
            outcome.doubled.append(f"question {number} went to the model {times} times")
    uncalled = set(range(outcome.tried // TRIES_OF_A_KEY)) - set(calls) - killed
    outcome.lost += [f"question {number} never went to the model" for number in sorted(uncalled)]
    check_database(server, outcome)
    return outcome


def tabs(stage: Stage) -> Outcome:
    """Ask from eight tabs in one conversation: every question has one place, and each tab's stay in their order."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url)
    server.start("/readyz")
    conversation = server.call("POST", "/api/conversations", {})[1]["conversation_id"]
    each = stage.count(5, 200)

    def ask(tab: int) -> list[int]:
        return [ask_in_turn(server, f"Question {tab * each + n}", conversation, outcome) for n in range(each)]

    with ThreadPoolExecutor(TABS) as pool:
        places = list(pool.map(ask, range(TABS)))
    if sorted(place for tab in places for place in tab) != list(range(1, TABS * each + 1)):
        outcome.lost.append("the turns of the conversation are not one after the other")
    outcome.wrong += [f"tab {tab} is not in its order" for tab in range(TABS) if places[tab] != sorted(places[tab])]
    outcome.tried = TABS * each
    check_database(server, outcome)
    check_locks(server, outcome)
    return outcome


def crowd(stage: Stage) -> Outcome:
    """Ask in a thousand conversations at once."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    many = stage.count(60, 1000)
    server = stage.server(stub.url, {"MAX_RUNNING_ANSWERS": str(many)})
    server.start("/readyz")
    asked = [Asked(server, number) for number in range(many)]
    together = threading.Barrier(many)

    def ask(one: Asked) -> None:
        together.wait()
        one.ask()

    with ThreadPoolExecutor(many) as pool:
        list(pool.map(ask, asked))
    for one in asked:
        if one.stream is None or one.stream.text != answer_to(one.number):
            status = None if one.stream is None else (one.stream.status, one.stream.text)
            outcome.wrong.append(f"question {one.number} got {status}")
    for start in range(0, many, CLIENTS):
        check_all(asked[start : start + CLIENTS], stub, outcome)
    check_database(server, outcome)
    check_locks(server, outcome)
    return outcome


def ask_in_turn(server: ServerProcess, question: str, conversation: int, outcome: Outcome) -> int:
    """Ask until the conversation is free, and return the number of the turn."""
    end = time.monotonic() + CONVERSATION_TIMEOUT_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException):
            body = {"question": question, "conversation_id": conversation}
            status, answer = server.call("POST", "/api/query", body)
            if status == 200:
                return int(answer["turn"])
            if answer["error"]["type"] != "ConversationBusy":
                outcome.wrong.append(f"{question}: {answer['error']}")
        time.sleep(random.uniform(0, MAX_SECONDS_BETWEEN_TRIES))
    outcome.lost.append(f"{question} was not answered within {CONVERSATION_TIMEOUT_SECONDS:.0f} s")
    return 0


def answers_of(server: ServerProcess) -> dict[str, str]:
    """Return the answers that are kept, by question."""
    both = "SELECT turn_id, content FROM messages WHERE role = '{}'"
    answers = dict(rows(server, both.format("assistant")))
    return {question: answers.get(turn_id, "") for turn_id, question in rows(server, both.format("user"))}


def check_locks(server: ServerProcess, outcome: Outcome) -> None:
    """Look for a database that was locked in what the server logged."""
    for log in server.log.parent.rglob(server.log.name):
        lines = log.read_text().splitlines()
        outcome.wrong += [line for line in lines if "locked" in line or "QueuePool" in line]
