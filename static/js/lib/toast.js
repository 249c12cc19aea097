// Toasts: short messages at the edge of the page. They stay while the pointer or the focus is on them.
import { t } from "./language.js";

const DURATION_SECONDS = { plain: 5, bad: 15, undoable: 12 };

/** Show a sentence and return its element; the caller removes it, or `fade` does. */
export function toast(sentence, bad = false) {
  const element = document.createElement("div");
  element.className = bad ? "toast bad" : "toast";
  if (bad) element.setAttribute("role", "alert");
  element.textContent = sentence;
  document.getElementById("toasts").append(element);
  return element;
}

/** Remove a toast after a while; the countdown restarts when the pointer or the focus leaves it. */
export function fade(element, seconds = DURATION_SECONDS[element.classList.contains("bad") ? "bad" : "plain"]) {
  let timer = null;
  const start = () => {
    clearTimeout(timer);
    timer = setTimeout(() => element.remove(), seconds * 1000);
  };
  const pause = () => clearTimeout(timer);
  for (const name of ["pointerenter", "focusin"]) element.addEventListener(name, pause);
  for (const name of ["pointerleave", "focusout"]) element.addEventListener(name, start);
  if (!element.querySelector(".dismiss")) element.prepend(dismissButton(element));
  start();
}

/** Keep a toast until it is closed: it is too long to read in passing. */
export function closable(element) {
  element.append(button(t("Close"), "quiet dismiss", () => element.remove()));
}

/** Return a small button that dismisses a toast; the style sheet draws its cross. */
function dismissButton(element) {
  const node = button("", "icon-button dismiss", () => element.remove());
  node.setAttribute("aria-label", t("Dismiss"));
  return node;
}

/** Say what was done, with an Undo button. */
export function undoable(sentence, undo) {
  const element = toast(sentence);
  const undoButton = button(t("Undo"), "undo", async () => {
    element.remove();
    await Promise.resolve(undo()).catch(showError);
  });
  element.append(undoButton);
  fade(element, DURATION_SECONDS.undoable);
  return element;
}

function button(words, kind, act) {
  const node = document.createElement("button");
  node.type = "button";
  node.className = kind;
  node.textContent = words;
  node.addEventListener("click", act);
  return node;
}

/** Show an error: the server's sentence, or that the server cannot be reached. */
export function showError(reason) {
  const element = toast(errorMessage(reason), true);
  element.classList.toggle("unreachable", reason instanceof TypeError);
  fade(element);
}

/** Show an error within a form, or another part that has a place for one. */
export function showErrorIn(part, reason) {
  const error = part.querySelector(".error");
  error.textContent = errorMessage(reason);
  error.hidden = false;
}

/** Hide the messages that say the server cannot be reached. */
export function clearUnreachable() {
  for (const element of document.querySelectorAll(".unreachable")) element.hidden = true;
}

/** Return an error as a sentence for people. */
export function errorMessage(reason) {
  return reason instanceof TypeError ? t("The server cannot be reached.") : reason.message;
}
