"""A model on loopback for benchmarks: streams tokens at a fixed pace, each with its time of sending.

As a program it prints its URL and serves until its input ends. The model's name sets the pace: ``TOKENS@PER_SECOND``; 0
per second sends them all at once.
"""

import asyncio
import json
import sys
import time


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request and close the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if head.startswith("GET"):  # The list of models is requested once; it has no limits.
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        length = next(
            int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length")
        )
        body = json.loads(await reader.readexactly(length))
        tokens, per_second = map(int, body["model"].split("@"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        due = time.monotonic()
        for _ in range(tokens):
            send(writer, {"choices": [{"index": 0, "delta": {"content": f"{time.monotonic_ns() // 1000:016d} "}}]})
            if per_second:
                due += 1 / per_second
                await writer.drain()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
        send(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        send(writer, {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": tokens}})
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


def send(writer: asyncio.StreamWriter, chunk: dict[str, object]) -> None:
    """Send one event as one chunk."""
    data = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


async def serve() -> None:
    """Serve until the input ends."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
