// The form below the transcript, as the modules that use it need it.

/** Return the form itself, null on pages without one. */
export function composer() {
  return document.getElementById("composer");
}

/** Stop answers, clear errors at the next keystroke, and grow the box with its text where the style sheet cannot. */
export function enableComposer() {
  if (!composer()) return;
  keepToastsAbove();
  // A browser gives the focus to no box where the address names a place on the page.
  addEventListener("load", () => {
    if (location.hash.startsWith("#turn-") && document.activeElement === document.body) focusComposer();
  });
  composer().querySelector(".stop-answer").addEventListener("click", () => {
    // The turn knows how; its own button is for pages without scripts.
    document.querySelector(".turn[data-followed] .stop").click();
    focusComposer();
  });
  const grows = CSS.supports("field-sizing", "content");
  document.addEventListener("input", (event) => {
    if (event.target.id !== "question") return;
    showComposerError(null);
    if (grows) return;
    event.target.style.setProperty("height", "auto");
    event.target.style.setProperty("height", `${event.target.scrollHeight}px`);
  });
}

/** Tell the style sheet how high the composer is, so that no toast covers it. */
function keepToastsAbove() {
  const area = composer().parentElement;
  const update = () => document.documentElement.style.setProperty("--composer-height", `${area.offsetHeight}px`);
  new ResizeObserver(update).observe(area);
}

/** Return the conversation's id, null for a new conversation. */
export function conversationId() {
  const { value } = composer().elements.conversation_id;
  return value ? Number(value) : null;
}

/** Focus the box where there is a keyboard; on a touch screen the keyboard would cover half of it. */
export function focusComposer() {
  if (matchMedia("(hover: hover)").matches) composer().elements.question.focus({ preventScroll: true });
}

/**
 * Show an error above the box; null clears it. With `whileBusy` it is only a hint; with `whileOffline` it goes when the
 * server can be reached again.
 */
export function showComposerError(message, { whileBusy = false, whileOffline = false } = {}) {
  const error = document.getElementById("composer-error");
  error.textContent = message ?? "";
  error.hidden = message === null;
  error.classList.toggle("hint", whileBusy);
  error.classList.toggle("unreachable", whileOffline);
}

/** Tell whether an answer of this conversation is being written. */
export function isBusy() {
  return document.querySelector(".turn[data-followed]") !== null;
}

/** While an answer is being written, Stop stands in the place of Ask. */
export function updateBusy() {
  if (!composer()) return;
  const stop = composer().querySelector(".stop-answer");
  const wasFocused = document.activeElement === stop;
  stop.hidden = !isBusy();
  composer().querySelector("button[type=submit]").hidden = isBusy();
  if (wasFocused && !isBusy()) focusComposer();
  if (!isBusy() && document.querySelector("#composer-error.hint")) showComposerError(null);
}

/** Put a text into the box, as if it had been typed. */
export function fill(text) {
  const box = composer().elements.question;
  box.value = text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Put a text back into the box, in front of what was typed meanwhile. */
export function restoreText(text) {
  const typedSince = composer().elements.question.value;
  if (text) fill(typedSince.trim() ? `${text}\n\n${typedSince}` : text);
}
