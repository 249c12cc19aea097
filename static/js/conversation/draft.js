// What was typed survives a reload: unsent text stays in the box, and a question whose fate is unknown can be sent again.
import { sentenceOf } from "../lib/toast.js";
import { composer, conversationId, fill } from "./composer.js";
import { goToItsTurn } from "./navigation.js";
import { decided } from "./overflow.js";
import { sendQuestion } from "./request.js";

const at = (kind) => `${kind}:${conversationId() ?? "new"}`;

/** Storage may be switched off; then nothing survives, and all else works. */
function keep(name, text) {
  try {
    if (text) sessionStorage.setItem(name, text);
    else sessionStorage.removeItem(name);
  } catch {
    // Nothing to do.
  }
}

function kept(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keep what is typed for this conversation, and put back what was. */
export function enableDrafts() {
  if (!composer()) return;
  const box = composer().elements.question;
  const unknown = unacknowledged();
  if (unknown) offer(unknown);
  const draft = kept(at("draft"));
  if (draft && !box.value && draft !== unknown?.body.question) fill(draft);
  box.addEventListener("input", keepDraft);
  addEventListener("pagehide", keepDraft);
}

function keepDraft() {
  keep(at("draft"), composer().elements.question.value);
}

/** Remember a question that is being sent, until its fate is known; return how to forget it. */
export function remember(body, key) {
  const name = at("sent");
  keep(name, JSON.stringify({ body, key }));
  return () => keep(name, null);
}

/** Return the question of this conversation whose fate is not known: {body, key}; null if there is none. */
export function unacknowledged() {
  const text = kept(at("sent"));
  return text ? JSON.parse(text) : null;
}

/** Offer to send a question again; the server knows it by its key if it did arrive. */
function offer({ body, key }) {
  const notice = document.getElementById("unsent-template").content.firstElementChild.cloneNode(true);
  const [name, error] = [at("sent"), notice.querySelector(".error")];
  notice.querySelector("blockquote").textContent = body.question;
  notice.querySelector("[data-again]").addEventListener("click", async (event) => {
    event.target.disabled = true;
    try {
      const response = await decided((choice) => sendQuestion({ ...body, ...choice }, key + (choice.on_overflow ?? "")));
      if (response === null) {
        event.target.disabled = false;
        return;
      }
      keep(name, null);
      await goToItsTurn(response);
    } catch (reason) {
      error.textContent = sentenceOf(reason);
      error.hidden = false;
      event.target.disabled = false;
    }
  });
  notice.querySelector("[data-discard]").addEventListener("click", () => {
    keep(name, null);
    notice.remove();
    composer().elements.question.focus();
  });
  document.getElementById("transcript").append(notice);
}
