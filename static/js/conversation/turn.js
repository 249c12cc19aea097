// One turn in the transcript: follow its events, reconnecting when the connection drops, until it has ended.
import { address } from "../lib/address.js";
import { refusalOf, send } from "../lib/api.js";
import { elementOf, setHtmlAfter } from "../lib/html.js";
import { t } from "../lib/language.js";
import { replaceTurn } from "../lib/patch.js";
import { readEvents } from "../lib/sse.js";
import { clearUnreachable, showError } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { answerBegins, answerEnds, answerGrows } from "./announcer.js";
import { updateBusy } from "./composer.js";
import { watchOperation } from "./operation.js";
import { keepAtEnd } from "./scroll-position.js";
import { showStep } from "./tool-step.js";

const RECONNECT_DELAYS_SECONDS = [0.5, 1, 2, 4, 8];

/** Follow every running turn within `root` that is not followed yet. */
export function followRunningTurns(root = document) {
  for (const element of root.querySelectorAll(".turn[data-stream]")) {
    if (!("followed" in element.dataset)) new TurnView(element).follow(element.dataset.stream);
  }
}

/** Redraw a turn from the server, and return the element that stands there now. */
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

/** Wait, or resume at once when the network or the reader comes back. */
function pause(seconds) {
  return new Promise((resolve) => {
    const waiting = new AbortController();
    const resume = () => {
      waiting.abort();
      resolve();
    };
    setTimeout(resume, seconds * 1000);
    addEventListener("online", resume, { signal: waiting.signal });
    document.addEventListener("visibilitychange", resume, { signal: waiting.signal });
  });
}

export class TurnView {
  constructor(element) {
    this.element = element;
    this.ended = false;
    this.turnId = null;
    this.stopping = false;
    element.dataset.followed = "";
    updateBusy();
  }

  /** Read the events of a response, then keep following until the turn has ended. */
  async read(response) {
    this.turnId = Number(response.headers.get("X-Turn-Id")) || null;
    if (this.stopping) this.stop();
    try {
      await this.readStream(response);
    } catch {
      // The connection was lost; what was shown stays.
    }
    if (!this.ended && this.turnId !== null) await this.follow(address(`/api/turns/${this.turnId}/stream?html=1`));
  }

  /** Follow the turn at `url`, reconnecting as needed: the stream begins with the whole answer so far. */
  async follow(url) {
    for (let attempt = 0; !this.ended; attempt += 1) {
      try {
        const response = await fetch(url);
        if (response.status >= 400 && response.status < 500) return this.abandon((await refusalOf(response)).message);
        if (response.ok) {
          this.reconnected();
          await this.readStream(response, () => {
            attempt = 0;
          });
        } else this.showState(t("The server has a problem. Retrying…"));
      } catch {
        this.disconnected();
      }
      if (this.ended) return undefined;
      await pause(RECONNECT_DELAYS_SECONDS[Math.min(attempt, RECONNECT_DELAYS_SECONDS.length - 1)]);
    }
    return undefined;
  }

  readStream(response, onEvent = () => null) {
    return readEvents(response, (name, _id, data) => {
      onEvent();
      this.show(name, data);
    });
  }

  show(name, data) {
    this.reconnected();
    if (data.turn_id) this.turnId = data.turn_id;
    if (data.state === "compacting") watchOperation();
    if (name === "state") this.showState(data.message);
    else if (name === "start") this.begin();
    else if (name === "step") this.step(data);
    else if (name === "token") this.write(data);
    else if (name === "end" || name === "error") this.end(data);
  }

  /** Show the state; that the answer is being stopped comes before everything else. */
  showState(sentence) {
    const state = this.element.querySelector(".state");
    const shown = this.stopping ? this.stoppingState() : sentence;
    if (state && state.textContent !== shown) state.textContent = shown;
  }

  stoppingState() {
    return "lost" in this.element.dataset ? t("Not connected. The answer will be stopped once the connection is back.") : t("Stopping.");
  }

  disconnected() {
    this.element.dataset.lost = "";
    this.showState(t("Connection lost. Reconnecting…"));
  }

  /** Note that the server answers again, and send it a stop that it missed. */
  reconnected() {
    if ("lost" in this.element.dataset) {
      delete this.element.dataset.lost;
      clearUnreachable();
      if (this.stopping) this.stop();
    }
  }

  /** Stop the answer; one that the server has not accepted yet is stopped as soon as it has. */
  async stop() {
    this.stopping = true;
    this.showState();
    if (this.turnId === null) return;
    await send("POST", address(`/api/turns/${this.turnId}/stop`), {}).catch((reason) => {
      if (reason instanceof TypeError) this.disconnected();
      else showError(reason);
    });
  }

  abandon(sentence) {
    this.stopping = false;
    this.showState(sentence);
    delete this.element.dataset.followed;
    updateBusy();
  }

  begin() {
    this.showState(t("Waiting for the first words."));
    answerBegins();
  }

  step(data) {
    this.showState(t("The model is continuing."));
    keepAtEnd(() => showStep(this.element.querySelector(".steps"), data));
  }

  /** Show new text: the first `keep` blocks stay as they are, so that nothing flickers or is drawn twice. */
  write({ keep, html }) {
    this.showState(t("Writing the answer."));
    const answer = this.element.querySelector(".answer");
    keepAtEnd(() => setHtmlAfter(answer, keep, html));
    answerGrows(answer);
  }

  async end(data) {
    this.ended = true;
    await this.redraw(data);
    // If it could not be drawn, the next poll of the conversation does it.
    delete this.element.dataset.followed;
    updateBusy();
    answerEnds(this.element, data);
    await refreshPage();
  }

  async redraw() {
    this.element = await redrawTurn(this.element, this.element.dataset.page ?? address(`/turns/${this.turnId}`));
  }
}
