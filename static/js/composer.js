// The form below the transcript, as the modules that use it need it.

/** Return the form itself, null on pages without one. */
export function composer() {
  return document.getElementById("composer");
}

/** Let the box grow with its text where the style sheet cannot. */
export function enableComposer() {
  if (CSS.supports("field-sizing", "content")) return;
  document.addEventListener("input", (event) => {
    if (event.target.id !== "question") return;
    event.target.style.setProperty("height", "auto");
    event.target.style.setProperty("height", `${event.target.scrollHeight}px`);
  });
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

/** Show a sentence above the box, or take it away with null. */
export function complain(sentence) {
  const error = document.getElementById("composer-error");
  error.textContent = sentence ?? "";
  error.hidden = sentence === null;
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
