// What stands around the transcript: banners, the list of conversations, the header with its options.
import { documentOf } from "./html.js";

/** Fetch the page once more when it comes back into view: settings and titles may have changed meanwhile. */
export function keepFrameFresh() {
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") refreshFrame();
  });
}

/** Replace what stands around the transcript by what the server draws of it now; the transcript stays. */
export async function refreshFrame() {
  const response = await fetch(location.pathname).catch(() => null);
  if (!response?.ok) return;
  const drawn = documentOf(await response.text());
  document.title = drawn.title;
  for (const id of ["banners", "conversations", "conversation-header"]) {
    const [now, then] = [document.getElementById(id), drawn.getElementById(id)];
    if (now && then && !now.contains(document.activeElement) && !now.querySelector("details[open]")) {
      now.replaceWith(document.adoptNode(then));
    }
  }
}
