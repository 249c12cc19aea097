// The form below the transcript, as the modules that use it need it.

/** Return the form itself, null on pages without one. */
export function composer() {
  return document.getElementById("composer");
}

/** Let complaints go with the next letter, and the box grow with its text where the style sheet cannot. */
export function enableComposer() {
  if (composer()) keepNewsAbove();
  const grows = CSS.supports("field-sizing", "content");
  document.addEventListener("input", (event) => {
    if (event.target.id !== "question") return;
    complain(null);
    if (grows) return;
    event.target.style.setProperty("height", "auto");
    event.target.style.setProperty("height", `${event.target.scrollHeight}px`);
  });
}

/** Tell the style sheet how high the composer is, so that no news at the edge of the page lies on it. */
function keepNewsAbove() {
  const place = composer().parentElement;
  const tell = () => document.documentElement.style.setProperty("--composer-height", `${place.offsetHeight}px`);
  new ResizeObserver(tell).observe(place);
}

/** Return the conversation's id, null for a conversation that is none yet. */
export function conversationId() {
  const { value } = composer().elements.conversation_id;
  return value ? Number(value) : null;
}

/** Let the person type on where there are keys; on a screen that is touched, keys would cover half of it. */
export function readyToType() {
  if (matchMedia("(hover: hover)").matches) composer().elements.question.focus();
}

/**
 * Show a sentence above the box, or take it away with null. One that holds `whileBusy` only is a hint, no error; one that
 * holds `whileLost` goes when the server can be reached again.
 */
export function complain(sentence, { whileBusy = false, whileLost = false } = {}) {
  const error = document.getElementById("composer-error");
  error.textContent = sentence ?? "";
  error.hidden = sentence === null;
  error.classList.toggle("hint", whileBusy);
  error.classList.toggle("unreachable", whileLost);
}

/** Tell whether an answer of this conversation is being written. */
export function isBusy() {
  return document.querySelector(".turn[data-followed]") !== null;
}

/** Let the button be there for as long as a question would be taken. */
export function showWhetherBusy() {
  if (!composer()) return;
  composer().querySelector("button[type=submit]").disabled = isBusy();
  if (!isBusy() && document.querySelector("#composer-error.hint")) complain(null);
}

/** Put a text into the box; whatever follows what is typed there follows it too. */
export function fill(text) {
  const box = composer().elements.question;
  box.value = text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Put a text back where it was typed, in front of what was typed meanwhile. */
export function giveBack(text) {
  const since = composer().elements.question.value;
  if (text) fill(since.trim() ? `${text}\n\n${since}` : text);
}
