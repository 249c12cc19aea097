"""Clients for benchmarks: ask many questions at once over the streaming API and record when each token arrives.

As a program: ``python -m bench.readers URL STREAMS SECONDS CONVERSATIONS [SEED]`` prints one JSON object for each
stream; the same seed asks the same questions.
"""

import asyncio
import json
import random
import sys
import time
from itertools import zip_longest
from typing import Any

from bench.words import common_words


def different_question(chance: random.Random) -> str:
    """Return a question that was probably not asked before: the vectors of recent questions are cached."""
    one, other = chance.sample(common_words(), 2)
    return f"What does the {one} of the {other} say about the weather?"


async def read_one(host: str, port: int, question: str, conversation: int | None, begin: float) -> dict[str, Any]:
    """Ask a question; return the status, the time of the first text, and when each token was sent and how late it was.

    All in seconds.
    """
    await asyncio.sleep(max(0.0, begin - time.monotonic()))
    body: dict[str, Any] = {"question": question}
    if conversation is not None:
        body |= {"conversation_id": conversation}
    data = json.dumps(body).encode()
    asked = time.monotonic()
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(
        f"POST /api/query/stream HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode()
        + data
    )
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    seen: dict[str, Any] = {"status": int(head.split()[1]), "text": "", "late": [], "first": None, "ended": None}
    if seen["status"] != 200:
        seen["retry_after"] = "retry-after" in head.lower()
        writer.close()
        return seen
    rest = b""
    while piece := await reader.read(65536):
        now = time.monotonic()
        rest += piece
        while (end := rest.find(b"\n\n")) >= 0:
            block, rest = rest[:end], rest[end + 2 :]
            take(seen, block, asked, now)
    writer.close()
    return seen


def take(seen: dict[str, Any], block: bytes, asked: float, now: float) -> None:
    """Record one event. A token's text is the time, in microseconds, at which the model sent it."""
    name = block[block.find(b"event: ") + 7 :].split(b"\n", 1)[0]
    if name == b"token":
        text = json.loads(block[block.find(b"data: ") + 6 :])["text"]
        seen["text"] += text
        seen["first"] = seen["first"] if seen["first"] is not None else now - asked
        seen["late"] += [(int(moment) / 1e6, round(now - int(moment) / 1e6, 6)) for moment in text.split()]
    elif name in (b"end", b"failed"):
        seen["ended"] = name.decode()


async def main(url: str, streams: int, spread: float, conversations: list[int], chance: random.Random) -> None:
    """Ask ``streams`` questions, spread over some seconds, and print what each client received."""
    host, port = url.removeprefix("http://").split(":")
    questions = [different_question(chance) for _ in range(streams)]
    begin = time.monotonic() + 0.1
    found = await asyncio.gather(
        *(
            read_one(host, int(port), question, conversation, begin + spread * n / streams)
            for n, (question, conversation) in enumerate(zip_longest(questions, conversations[:streams]))
        )
    )
    for one in found:
        one["tokens"] = len(one.pop("text").split())
        print(json.dumps(one))


if __name__ == "__main__":
    given = sys.argv[1:]
    seeded = random.Random(given[4]) if len(given) > 4 else random.SystemRandom()
    asyncio.run(main(given[0], int(given[1]), float(given[2]), json.loads(given[3]), seeded))
