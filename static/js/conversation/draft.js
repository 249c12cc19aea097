// Drafts survive a reload: unsent text stays in the box, and a question that may not have arrived can be sent again.
import { showErrorIn } from "../lib/toast.js";
import { composer, conversationId, fill } from "./composer.js";
import { goToTurn } from "./navigation.js";
import { withOverflowChoice } from "./overflow.js";
import { sendQuestion } from "./request.js";
import { isTemporary } from "./temporary.js";

const keyFor = (kind) => `${kind}:${conversationId() ?? "new"}`;

/** Storage may be switched off; then nothing survives a reload, and everything else works. */
function store(name, text) {
  try {
    if (text) sessionStorage.setItem(name, text);
    else sessionStorage.removeItem(name);
  } catch {
    // Nothing to do.
  }
}

function stored(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Save what is typed for this conversation, and restore it. */
export function enableDrafts() {
  // What is typed into a temporary conversation is kept nowhere.
  if (!composer() || isTemporary()) return;
  const box = composer().elements.question;
  const unsent = unacknowledged();
  if (unsent) offerResend(unsent);
  const draft = stored(keyFor("draft"));
  if (draft && !box.value && draft !== unsent?.body.question) fill(draft);
  box.addEventListener("input", saveDraft);
  addEventListener("pagehide", saveDraft);
}

function saveDraft() {
  store(keyFor("draft"), composer().elements.question.value);
}

/** Remember a question that is being sent until the server acknowledges it; return a function that forgets it. */
export function remember(body, key) {
  const name = keyFor("sent");
  store(name, JSON.stringify({ body, key }));
  return () => store(name, null);
}

/** Return the question of this conversation that the server has not acknowledged: {body, key}; null if there is none. */
export function unacknowledged() {
  const text = stored(keyFor("sent"));
  return text ? JSON.parse(text) : null;
}

/** Offer to send a question again; its idempotency key tells the server if it did arrive. */
function offerResend({ body, key }) {
  const notice = document.getElementById("unsent-template").content.firstElementChild.cloneNode(true);
  const name = keyFor("sent");
  notice.querySelector("blockquote").textContent = body.question;
  notice.querySelector("[data-resend]").addEventListener("click", async (event) => {
    event.target.disabled = true;
    try {
      const response = await withOverflowChoice((choice) => sendQuestion({ ...body, ...choice }, key + (choice.on_overflow ?? "")));
      if (response === null) {
        event.target.disabled = false;
        return;
      }
      store(name, null);
      await goToTurn(response);
    } catch (reason) {
      showErrorIn(notice, reason);
      event.target.disabled = false;
    }
  });
  notice.querySelector("[data-discard]").addEventListener("click", () => {
    store(name, null);
    notice.remove();
    composer().elements.question.focus();
  });
  document.getElementById("transcript").append(notice);
}
