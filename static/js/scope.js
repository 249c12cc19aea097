// Which documents the questions of this page are about: the label at the composer, which can be taken away.
import { composer } from "./composer.js";
import { documentOf } from "./html.js";

/** Take the label away in place, so that nothing that is typed gets lost. */
export function enableScope() {
  document.addEventListener("click", (event) => {
    if (!event.target.closest("a[data-widen]")) return;
    event.preventDefault();
    document.getElementById("scope").remove();
    history.replaceState(null, "", location.pathname);
    composer().elements.question.focus();
    greet();
  });
}

/** Draw the welcome anew where there is one: it says what the questions are about. */
async function greet() {
  const response = await fetch(location.pathname).catch(() => null);
  if (!response?.ok) return;
  const drawn = documentOf(await response.text()).querySelector(".welcome");
  if (drawn) document.querySelector(".welcome")?.replaceWith(drawn);
}

/** Return the fields of a question that say which documents it is about; none for all. */
export function scopeOf() {
  const said = new FormData(composer());
  const fields = { document_ids: said.getAll("document_ids").map(Number), tags: said.getAll("tags") };
  return Object.fromEntries(Object.entries(fields).filter(([, values]) => values.length));
}

/** Return the same for the address of a page. */
export function scopeInAddress() {
  const said = new FormData(composer());
  const query = new URLSearchParams();
  for (const id of said.getAll("document_ids")) query.append("documents", id);
  for (const tag of said.getAll("tags")) query.append("tag", tag);
  return query.size ? `?${query}` : "";
}
