// One turn in the transcript: follow its events, come back after a lost connection, stop it, retry it.
import { watchDoing } from "./doing.js";
import { refreshPage } from "./frame.js";
import { elementOf, setHtml } from "./html.js";
import { keepAtEnd } from "./scroll.js";
import { readEvents } from "./sse.js";
import { showStep } from "./step.js";

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

/** Draw a turn anew as the server has it, in the place of its element; returns the new element. */
export async function redrawTurn(element, page = element.dataset.page) {
  const response = await fetch(page);
  if (!response.ok) return element;
  const drawn = elementOf(await response.text());
  keepAtEnd(() => element.replaceWith(drawn));
  return drawn;
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
    if (data.state === "compacting") watchDoing();
    if (name === "state") this.say(data.message);
    else if (name === "start") this.say("The answer is being written.");
    else if (name === "step") this.step(data);
    else if (name === "token") this.write(data.html);
    else if (name === "end" || name === "error") this.end();
  }

  say(sentence) {
    const state = this.element.querySelector(".state");
    if (state && state.textContent !== sentence) state.textContent = sentence;
  }

  step(data) {
    this.say("The model goes on.");
    keepAtEnd(() => showStep(this.element.querySelector(".steps"), data));
  }

  write(html) {
    this.say("The answer is being written.");
    keepAtEnd(() => setHtml(this.element.querySelector(".answer"), html));
  }

  async end() {
    this.ended = true;
    await this.redraw();
    await refreshPage();
  }

  /** Replace the turn by what the server draws of it now. */
  async redraw() {
    this.element = await redrawTurn(this.element, this.element.dataset.page ?? `/turns/${this.turnId}`);
  }
}
