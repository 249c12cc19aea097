// How far a summary has come: a bar above the composer, while the server writes one.
import { conversationId } from "./composer.js";

const POLL_INTERVAL_MS = 600;
// How often nothing may be going on before the first look finds something: the server has to get there.
const MAX_EMPTY_POLLS = 5;
let watching = false;

/** Go on showing what is being done with the conversation when the page opens. */
export function enableOperation() {
  const bar = document.getElementById("operation");
  if (bar && !bar.hidden) watchOperation();
}

/** Look at what is being done with the conversation until that is over. */
export async function watchOperation() {
  const bar = document.getElementById("operation");
  if (!bar || watching || conversationId() === null) return;
  watching = true;
  for (let emptyPolls = 0; emptyPolls < MAX_EMPTY_POLLS; ) {
    const operation = await fetchOperation();
    show(bar, operation);
    if (operation) emptyPolls = 0;
    else emptyPolls += 1;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
  watching = false;
}

async function fetchOperation() {
  const response = await fetch(`/api/conversations/${conversationId()}/operation`).catch(() => null);
  return response?.ok ? (await response.json().catch(() => ({}))).operation : null;
}

function show(bar, operation) {
  bar.hidden = !operation;
  if (!operation) return;
  const sentence = bar.querySelector("span");
  if (sentence.textContent !== operation.sentence) sentence.textContent = operation.sentence;
  const progress = bar.querySelector("progress");
  progress.max = operation.parts;
  // One part alone has no middle that could be shown.
  if (operation.parts > 1) progress.value = operation.what === "shorten" ? operation.parts : operation.part - 1;
  else progress.removeAttribute("value");
}
