// One turn in the transcript: follow its events, come back after a lost connection, stop it, retry it.
import { refreshFrame } from "./frame.js";
import { askForView, drawHorizon } from "./horizon.js";
import { elementOf, setHtml } from "./html.js";
import { readEvents } from "./sse.js";

const SECONDS_BEFORE_COMING_BACK = [0.5, 1, 2, 4, 8];

/** Follow every turn of the page that is being answered. */
export function followRunningTurns() {
  for (const element of document.querySelectorAll(".turn[data-stream]")) {
    new TurnView(element).follow(element.dataset.stream);
  }
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.stop) {
      event.preventDefault();
      fetch(form.dataset.stop, { method: "POST" });
    } else if (form.dataset.retry) {
      event.preventDefault();
      retry(form);
    }
  });
}

async function retry(form) {
  const response = await fetch(form.dataset.retry, { method: "POST" });
  const data = await response.json();
  if (!response.ok) {
    form.closest(".turn").querySelector(".error").textContent = data.error.message;
    return;
  }
  const view = new TurnView(form.closest(".turn"));
  await view.redraw();
  view.follow(`/api/turns/${data.turn_id}/stream?html=1`);
}

export class TurnView {
  constructor(element) {
    this.element = element;
    this.position = null;
    this.ended = false;
    this.turnId = null;
  }

  /** Take the events of a response, then keep following until the turn has ended. */
  async take(response) {
    try {
      await readEvents(response, (name, id, data) => this.show(name, id, data));
    } catch {
      // The connection was lost; what was shown stays.
    }
    if (!this.ended && this.turnId !== null) await this.follow(`/api/turns/${this.turnId}/stream?html=1`);
  }

  /** Follow the turn at `url`; come back where it left off after a lost connection. */
  async follow(url) {
    for (let attempt = 0; !this.ended; attempt += 1) {
      const headers = this.position === null ? {} : { "Last-Event-ID": String(this.position) };
      try {
        const response = await fetch(url, { headers });
        if (response.status === 404) return this.say("This turn is not there any more.");
        if (response.ok) {
          await readEvents(response, (name, id, data) => {
            attempt = 0;
            this.show(name, id, data);
          });
        }
      } catch {
        this.say("The connection was lost. Trying to come back.");
      }
      if (this.ended) return undefined;
      const pause = SECONDS_BEFORE_COMING_BACK[Math.min(attempt, SECONDS_BEFORE_COMING_BACK.length - 1)];
      await new Promise((resolve) => setTimeout(resolve, pause * 1000));
    }
    return undefined;
  }

  show(name, id, data) {
    if (data.turn_id) this.turnId = data.turn_id;
    if (id !== null) this.position = Math.max(Number(id), this.position ?? 0);
    if (name === "state") this.say(data.message);
    else if (name === "start") this.say("The answer is being written.");
    else if (name === "token") this.write(data.html);
    else if (name === "end" || name === "error") this.end();
  }

  say(sentence) {
    const state = this.element.querySelector(".state");
    if (state) state.textContent = sentence;
  }

  write(html) {
    keepAtEnd(() => setHtml(this.element.querySelector(".answer"), html));
  }

  async end() {
    this.ended = true;
    await this.redraw();
    const [view] = await Promise.all([askForView(), refreshFrame()]);
    if (view) keepAtEnd(() => drawHorizon(view));
  }

  /** Replace the turn by what the server draws of it now. */
  async redraw() {
    const page = this.element.dataset.page ?? `/turns/${this.turnId}`;
    const response = await fetch(page);
    if (!response.ok) return;
    const drawn = elementOf(await response.text());
    keepAtEnd(() => this.element.replaceWith(drawn));
    this.element = drawn;
  }
}

/** Begin at the latest turn, unless the address names a place. */
export function showTheEnd() {
  const main = document.getElementById("main");
  if (!location.hash && document.getElementById("transcript") && !location.search) main.scrollTop = main.scrollHeight;
}

/** Change the page; whoever was reading at its end stays at its end, and nobody else is moved. */
function keepAtEnd(change) {
  const main = document.getElementById("main");
  const atEnd = main.scrollHeight - main.scrollTop - main.clientHeight < 120;
  change();
  if (atEnd) main.scrollTop = main.scrollHeight;
}
