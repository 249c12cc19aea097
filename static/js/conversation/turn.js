// One turn in the transcript: follow its events and come back after a lost connection, until it has ended.
import { refusalOf, send } from "../lib/api.js";
import { elementOf, setHtmlBehind } from "../lib/html.js";
import { replaceTurn } from "../lib/patch.js";
import { readEvents } from "../lib/sse.js";
import { complainAbout, reached } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { answerBegins, answerEnds, answerGrows } from "./announcer.js";
import { showWhetherBusy } from "./composer.js";
import { watchOperation } from "./operation.js";
import { keepAtEnd } from "./scroll-position.js";
import { showStep } from "./tool-step.js";

const SECONDS_BEFORE_COMING_BACK = [0.5, 1, 2, 4, 8];

/** Follow every turn within `place` that is being answered and that nobody follows yet. */
export function followRunningTurns(place = document) {
  for (const element of place.querySelectorAll(".turn[data-stream]")) {
    if (!("followed" in element.dataset)) new TurnView(element).follow(element.dataset.stream);
  }
}

/** Draw a turn anew as the server has it, in the place of its element; returns the new element. */
export async function redrawTurn(element, page = element.dataset.page) {
  const response = await fetch(page).catch(() => null);
  if (!response?.ok) return element;
  const drawn = elementOf(await response.text());
  let placed = element;
  keepAtEnd(() => {
    placed = replaceTurn(element, drawn);
  });
  return placed;
}

/** Wait, but not on while the network or the reader has just come back. */
function pause(seconds) {
  return new Promise((resolve) => {
    const waking = new AbortController();
    const go = () => {
      waking.abort();
      resolve();
    };
    setTimeout(go, seconds * 1000);
    addEventListener("online", go, { signal: waking.signal });
    document.addEventListener("visibilitychange", go, { signal: waking.signal });
  });
}

export class TurnView {
  constructor(element) {
    this.element = element;
    this.ended = false;
    this.turnId = null;
    this.unwanted = false;
    element.dataset.followed = "";
    showWhetherBusy();
  }

  /** Take the events of a response, then keep following until the turn has ended. */
  async take(response) {
    this.turnId = Number(response.headers.get("X-Turn-Id")) || null;
    if (this.unwanted) this.stop();
    try {
      await this.read(response);
    } catch {
      // The connection was lost; what was shown stays.
    }
    if (!this.ended && this.turnId !== null) await this.follow(`/api/turns/${this.turnId}/stream?html=1`);
  }

  /** Follow the turn at `url`; come back after a lost connection: the stream begins with the whole answer so far. */
  async follow(url) {
    for (let attempt = 0; !this.ended; attempt += 1) {
      try {
        const response = await fetch(url);
        if (response.status >= 400 && response.status < 500) return this.leave((await refusalOf(response)).message);
        if (response.ok) {
          this.found();
          await this.read(response, () => {
            attempt = 0;
          });
        } else this.say("The server is in trouble. Trying again.");
      } catch {
        this.lose();
      }
      if (this.ended) return undefined;
      await pause(SECONDS_BEFORE_COMING_BACK[Math.min(attempt, SECONDS_BEFORE_COMING_BACK.length - 1)]);
    }
    return undefined;
  }

  read(response, onEvent = () => null) {
    return readEvents(response, (name, _id, data) => {
      onEvent();
      this.show(name, data);
    });
  }

  show(name, data) {
    this.found();
    if (data.turn_id) this.turnId = data.turn_id;
    if (data.state === "compacting") watchOperation();
    if (name === "state") this.say(data.message);
    else if (name === "start") this.begin();
    else if (name === "step") this.step(data);
    else if (name === "token") this.write(data);
    else if (name === "end" || name === "error") this.end(data);
  }

  /** Say how it stands; that it is to be stopped comes before everything else. */
  say(sentence) {
    const state = this.element.querySelector(".state");
    const shown = this.unwanted ? this.howItStops() : sentence;
    if (state && state.textContent !== shown) state.textContent = shown;
  }

  howItStops() {
    return "lost" in this.element.dataset ? "Not connected. It will be stopped as soon as the server can be reached." : "Stopping.";
  }

  lose() {
    this.element.dataset.lost = "";
    this.say("Connection lost. Reconnecting…");
  }

  /** Take note that the server answers again, and tell it what it has not heard. */
  found() {
    if ("lost" in this.element.dataset) {
      delete this.element.dataset.lost;
      reached();
      if (this.unwanted) this.stop();
    }
  }

  /** End the answer where it is; one that the server has not taken yet is ended as soon as it has. */
  async stop() {
    this.unwanted = true;
    this.say();
    if (this.turnId === null) return;
    await send("POST", `/api/turns/${this.turnId}/stop`, {}).catch((reason) => {
      if (reason instanceof TypeError) this.lose();
      else complainAbout(reason);
    });
  }

  leave(sentence) {
    this.unwanted = false;
    this.say(sentence);
    delete this.element.dataset.followed;
    showWhetherBusy();
  }

  begin() {
    this.say("The answer is being written.");
    answerBegins();
  }

  step(data) {
    this.say("The model goes on.");
    keepAtEnd(() => showStep(this.element.querySelector(".steps"), data));
  }

  /** Show what came: the first `keep` blocks stay as they are, so that nothing flickers and nothing is drawn twice. */
  write({ keep, html }) {
    this.say("The answer is being written.");
    const answer = this.element.querySelector(".answer");
    keepAtEnd(() => setHtmlBehind(answer, keep, html));
    answerGrows(answer);
  }

  async end(data) {
    this.ended = true;
    await this.redraw();
    // Where it could not be drawn, the next look at the conversation does it.
    delete this.element.dataset.followed;
    showWhetherBusy();
    answerEnds(this.element, data);
    await refreshPage();
  }

  /** Replace the turn by what the server draws of it now. */
  async redraw() {
    this.element = await redrawTurn(this.element, this.element.dataset.page ?? `/turns/${this.turnId}`);
  }
}
