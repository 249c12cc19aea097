// The start page: what is said above the question box and offered below it, as long as nothing has been asked.
import { documentOf } from "../lib/html.js";

const parts = (root) => [...root.querySelectorAll(".welcome")];

/** Leave the start page: something stands in the transcript. */
export function removeWelcome() {
  for (const part of parts(document)) part.remove();
}

/** Redraw the start page, which names documents, from a page of the server, by default this one's. */
export async function redrawWelcome(drawn = null) {
  if (!parts(document).length) return;
  const page = drawn ?? (await fetch(location.href).then((response) => (response.ok ? response.text() : null)).then((html) => html && documentOf(html)));
  if (!page) return;
  const next = parts(page);
  parts(document).forEach((current, nth) => {
    const hadFocus = current.contains(document.activeElement);
    if (next[nth]) current.replaceWith(document.adoptNode(next[nth]));
    if (hadFocus) next[nth]?.querySelector("input[type=file]")?.focus();
  });
}
