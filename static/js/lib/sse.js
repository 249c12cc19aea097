// Read server-sent events from a stream of bytes. Knows no page: it takes pieces cut anywhere and gives events.

/** Takes the bytes of an event stream in pieces and calls `onEvent({name, id, data})` for each whole event. */
export class EventReader {
  #decoder = new TextDecoder("utf-8");
  #rest = "";
  #event = { name: "message", id: null, data: [] };

  constructor(onEvent) {
    this.onEvent = onEvent;
  }

  feed(bytes) {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    // A carriage return at the end may be half of a line break.
    const held = this.#rest.endsWith("\r") ? "\r" : "";
    const text = held ? this.#rest.slice(0, -1) : this.#rest;
    const lines = text.split(/\r\n|\r|\n/);
    this.#rest = lines.pop() + held;
    for (const line of lines) this.#line(line);
  }

  #line(line) {
    if (line === "") {
      if (this.#event.data.length) {
        this.onEvent({ name: this.#event.name, id: this.#event.id, data: this.#event.data.join("\n") });
      }
      this.#event = { name: "message", id: null, data: [] };
      return;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#event.name = value;
    else if (name === "id") this.#event.id = value;
    else if (name === "data") this.#event.data.push(value);
  }
}

/** How long a stream may be silent before it counts as lost: the server sends a comment every 15 seconds. */
export const silenceTimeout = { seconds: 40 };

/** The connection has gone silent without being closed. */
class Silence extends Error {}

/**
 * Read a response's events to its end; each call of `onEvent` gets the name, the id and the parsed data.
 * Throws Silence when nothing arrives for too long, not even a heartbeat: the other end is gone.
 */
export async function readEvents(response, onEvent) {
  const reader = new EventReader((event) => onEvent(event.name, event.id, JSON.parse(event.data)));
  const body = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await withTimeout(body.read());
      if (done) return;
      reader.feed(value);
    }
  } finally {
    // A reader who stops disconnects, so that the server does not write for nobody.
    body.cancel().catch(() => null);
  }
}

async function withTimeout(reading) {
  let timer = null;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Silence()), silenceTimeout.seconds * 1000);
  });
  try {
    return await Promise.race([reading, silence]);
  } finally {
    clearTimeout(timer);
  }
}
