// Which documents the questions are about: kept with the conversation, shown at the composer, set from the library.
import { send } from "../lib/api.js";
import { documentOf } from "../lib/html.js";
import { complainAbout, fade, toast } from "../lib/toast.js";
import { composer, conversationId } from "./composer.js";

/** Let the label be taken away in place, and documents be asked about without leaving the open conversation. */
export function enableScope() {
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || !composer()) return;
    const about = event.target.closest("[data-about]");
    if (event.target.closest("[data-widen]")) {
      event.preventDefault();
      widen().catch(complainAbout);
    } else if (about && conversationId() !== null) {
      event.preventDefault();
      askAbout(about.dataset.about.split(",").map(Number)).catch(complainAbout);
    }
  });
}

/** Let the open conversation be about some documents, and say so. */
export async function askAbout(ids) {
  await send("PATCH", `/api/conversations/${conversationId()}`, { document_ids: ids, tags: null });
  await redraw();
  fade(toast(`From now on: ${document.querySelector("#scope span").textContent}.`));
  composer().elements.question.focus();
}

async function widen() {
  if (conversationId() !== null) {
    await send("PATCH", `/api/conversations/${conversationId()}`, { document_ids: null, tags: null });
  } else history.replaceState(null, "", location.pathname);
  await redraw();
  composer().elements.question.focus();
}

/** Draw the label, and the welcome where there is one, as the server has them now. */
async function redraw() {
  const response = await fetch(conversationId() === null ? "/" : `/conversations/${conversationId()}`);
  if (!response.ok) return;
  const drawn = documentOf(await response.text());
  for (const part of ["#scope", ".welcome"]) {
    const [now, then] = [document.querySelector(part), drawn.querySelector(part)];
    if (now && then) now.replaceWith(document.adoptNode(then));
  }
}

/** Return the fields of a first question that say which documents its conversation is about; none for all. */
export function scopeOf() {
  if (conversationId() !== null) return {};
  const said = new FormData(composer());
  const fields = { document_ids: said.getAll("document_ids").map(Number), tags: said.getAll("tags") };
  return Object.fromEntries(Object.entries(fields).filter(([, values]) => values.length));
}
