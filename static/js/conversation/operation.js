// How far a summary has come: a bar above the composer, while the server writes one.
import { conversationId } from "./composer.js";

const MILLISECONDS_BETWEEN_LOOKS = 600;
// How often nothing may be going on before the first look finds something: the server has to get there.
const LOOKS_BEFORE_GIVING_UP = 5;
let watching = false;

/** Go on showing what is being done with the conversation when the page opens. */
export function enableDoing() {
  const bar = document.getElementById("doing");
  if (bar && !bar.hidden) watchDoing();
}

/** Look at what is being done with the conversation until that is over. */
export async function watchDoing() {
  const bar = document.getElementById("doing");
  if (!bar || watching || conversationId() === null) return;
  watching = true;
  for (let inVain = 0; inVain < LOOKS_BEFORE_GIVING_UP; ) {
    const doing = await look();
    show(bar, doing);
    if (doing) inVain = 0;
    else inVain += 1;
    await new Promise((resolve) => setTimeout(resolve, MILLISECONDS_BETWEEN_LOOKS));
  }
  watching = false;
}

async function look() {
  const response = await fetch(`/api/conversations/${conversationId()}/doing`).catch(() => null);
  return response?.ok ? (await response.json().catch(() => ({}))).doing : null;
}

function show(bar, doing) {
  bar.hidden = !doing;
  if (!doing) return;
  const sentence = bar.querySelector("span");
  if (sentence.textContent !== doing.sentence) sentence.textContent = doing.sentence;
  const progress = bar.querySelector("progress");
  progress.max = doing.parts;
  // One part alone has no middle that could be shown.
  if (doing.parts > 1) progress.value = doing.what === "shorten" ? doing.parts : doing.part - 1;
  else progress.removeAttribute("value");
}
