// The filter: which documents questions are about. Kept with the conversation, shown at the composer, set in the library.
import { address } from "../lib/address.js";
import { send } from "../lib/api.js";
import { documentOf } from "../lib/html.js";
import { t } from "../lib/language.js";
import { fade, showError, toast } from "../lib/toast.js";
import { composer, conversationId } from "./composer.js";
import { redrawWelcome } from "./welcome.js";

/** Let the filter be removed in place, and set without leaving the open conversation. */
export function enableScope() {
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || !composer()) return;
    const about = event.target.closest("[data-about]");
    if (event.target.closest("[data-widen]")) {
      event.preventDefault();
      removeFilter().catch(showError);
    } else if (about && conversationId() !== null) {
      event.preventDefault();
      askAbout(about.dataset.about.split(",").map(Number)).catch(showError);
    }
  });
}

/** Filter the open conversation to some documents, and say so. */
export async function askAbout(ids) {
  await send("PATCH", address(`/api/conversations/${conversationId()}`), { document_ids: ids, tags: null, library_ids: null, after: null, before: null });
  await redrawFilter();
  fade(toast(t("Filter applied: {documents}.", { documents: document.querySelector("#scope bdi").textContent })));
  composer().elements.question.focus();
}

async function removeFilter() {
  if (conversationId() !== null) {
    await send("PATCH", address(`/api/conversations/${conversationId()}`), { document_ids: null, tags: null, library_ids: null, after: null, before: null });
  } else history.replaceState(null, "", location.pathname);
  await redrawFilter();
  composer().elements.question.focus();
}

/** Redraw the filter, and the welcome if there is one, from the server. */
export async function redrawFilter() {
  const response = await fetch(conversationId() === null ? location.href : address(`/conversations/${conversationId()}`));
  if (!response.ok) return;
  const drawn = documentOf(await response.text());
  document.getElementById("scope").replaceWith(document.adoptNode(drawn.getElementById("scope")));
  await redrawWelcome(drawn);
}

/** Return the documents (`document_ids`) or `tags` of the filter. */
export function filterOf(kind) {
  return JSON.parse(document.querySelector("#scope .scope")?.dataset[kind === "tags" ? "tags" : "documents"] ?? "[]");
}

/** Return the filter as fields of a first question; none for all documents. */
export function scopeOf() {
  if (conversationId() !== null) return {};
  const fields = { document_ids: filterOf("document_ids"), tags: filterOf("tags") };
  const days = JSON.parse(document.querySelector("#scope .scope")?.dataset.days ?? "{}");
  return Object.fromEntries(Object.entries({ ...fields, ...days }).filter(([, values]) => values?.length));
}
