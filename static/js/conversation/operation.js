// Progress of a summary: a bar above the composer while the server writes one.
import { address } from "../lib/address.js";
import { conversationId } from "./composer.js";

const POLL_INTERVAL_MS = 600;
// How many polls may find nothing before polling stops: the server needs a moment to start.
const MAX_IDLE_POLLS = 5;
let watching = false;

/** Show the operation that is running when the page opens. */
export function enableOperation() {
  const bar = document.getElementById("operation");
  if (bar && !bar.hidden) watchOperation();
}

/** Poll the conversation's running operation until it is over. */
export async function watchOperation() {
  const bar = document.getElementById("operation");
  if (!bar || watching || conversationId() === null) return;
  watching = true;
  for (let idlePolls = 0; idlePolls < MAX_IDLE_POLLS; ) {
    const operation = await fetchOperation();
    show(bar, operation);
    if (operation) idlePolls = 0;
    else idlePolls += 1;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
  watching = false;
}

async function fetchOperation() {
  const response = await fetch(address(`/api/conversations/${conversationId()}/operation`)).catch(() => null);
  return response?.ok ? (await response.json().catch(() => ({}))).operation : null;
}

function show(bar, operation) {
  bar.hidden = !operation;
  if (!operation) return;
  const sentence = bar.querySelector("span");
  if (sentence.textContent !== operation.sentence) sentence.textContent = operation.sentence;
  const progress = bar.querySelector("progress");
  progress.max = operation.parts;
  // A single part has no progress to show.
  if (operation.parts > 1) progress.value = operation.what === "shorten" ? operation.parts : operation.part - 1;
  else progress.removeAttribute("value");
}
