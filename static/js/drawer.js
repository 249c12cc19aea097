// The drawer on the right: sources and receipts open in it instead of on a page of their own.
import { setHtml } from "./html.js";

/** Open every link that is marked for it in the drawer. */
export function enableDrawer() {
  const drawer = document.getElementById("drawer");
  const content = document.getElementById("drawer-content");
  let opener = null;

  async function open(link) {
    const url = new URL(link.href);
    url.searchParams.set("drawer", "1");
    const response = await fetch(url);
    if (!response.ok) {
      location.assign(link.href);
      return;
    }
    setHtml(content, await response.text());
    // Who reads on in the drawer comes back to where it was opened from.
    if (!drawer.contains(link)) opener = link;
    drawer.hidden = false;
    const passage = content.querySelector("#passage");
    if (passage) passage.scrollIntoView({ block: "start" });
    else drawer.scrollTop = 0;
    drawer.focus({ preventScroll: true });
  }

  function close() {
    drawer.hidden = true;
    content.replaceChildren();
    opener?.focus();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-drawer]");
    const modified = event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0;
    if (link && !modified) {
      event.preventDefault();
      open(link);
    } else if (event.target.closest("[data-close=drawer]")) {
      close();
    }
    const citation = event.target.closest('.answer a[href^="#source-"]');
    if (citation) {
      const source = document.getElementById(citation.hash.slice(1));
      source?.closest("details")?.setAttribute("open", "");
      const target = source?.querySelector("a[data-drawer]");
      if (target && !modified) {
        event.preventDefault();
        open(target);
      }
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !drawer.hidden) close();
  });
}
