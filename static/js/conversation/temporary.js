// A temporary conversation: its turns are kept in this page alone, and go along with each question.
import { send } from "../lib/api.js";
import { elementOf } from "../lib/html.js";
import { t } from "../lib/language.js";
import { replaceTurn } from "../lib/patch.js";
import { composer, restoreText } from "./composer.js";
import { scopeOf } from "./scope.js";
import { keepAtEnd } from "./scroll-position.js";
import { TurnView } from "./turn.js";

const earlier = [];

// The browser asks before the page, and all that was said in it, is left.
addEventListener("beforeunload", (event) => {
  if (earlier.length) event.preventDefault();
});

/** Tell whether nothing that is asked on this page is to be stored. */
export function isTemporary() {
  return composer() !== null && "temporary" in composer().dataset;
}

/** A turn that nobody can come back to: its answer ends with its connection. */
export class TemporaryTurn extends TurnView {
  #connection = new AbortController();

  /** Send the question with the turns before it. Throws Refusal, or TypeError if there is no server. */
  ask(question) {
    this.question = question;
    const body = { question, earlier, on_overflow: "trim", ...scopeOf() };
    return send("POST", composer().dataset.stream, body, {}, this.#connection.signal).catch((reason) => {
      if (this.stopping) return null;
      throw reason;
    });
  }

  async read(response) {
    await this.readStream(response).catch(() => null);
    if (!this.ended) this.breakOff(this.stopping ? t("Stopped.") : t("Connection lost. Ask again."));
  }

  stop() {
    this.stopping = true;
    this.#connection.abort();
  }

  redraw(data) {
    // Without its turn something went wrong that is not the model's fault, such as a sign-out.
    if (!data.html) return this.breakOff(data.error.message);
    keepAtEnd(() => {
      this.element = replaceTurn(this.element, elementOf(data.html));
    });
    return this.keep(data.answer);
  }

  /** Leave what was written as it stands. */
  breakOff(sentence) {
    this.ended = true;
    this.stopping = false;
    this.keep(this.element.querySelector(".answer").innerText.trim());
    this.abandon(sentence);
    this.element.querySelector(".actions").remove();
  }

  keep(answer) {
    if (answer) earlier.push({ question: this.question, answer });
    else restoreText(this.question);
  }
}
