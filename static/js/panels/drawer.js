// The drawer at the inner edge: sources, receipts, documents and settings open in it instead of on pages of their own.
import { refusalOf } from "../lib/api.js";
import { setHtml } from "../lib/html.js";
import { showError } from "../lib/toast.js";

const drawer = () => document.getElementById("drawer");
const content = () => document.getElementById("drawer-content");
const narrow = matchMedia("(max-width: 60rem)");
let opener = null;
let request = null;
let pushed = false;

/** Open every link that is marked for it in the drawer, and what the page itself holds behind a button. */
export function enableDrawer() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-drawer]") ?? sourceLinkOf(event.target);
    const held = event.target.closest("button[data-drawer]");
    const modified = event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0;
    if (link && !modified) {
      event.preventDefault();
      openInDrawer(link.href, link);
    } else if (held) {
      request?.abort();
      content().replaceChildren(held.nextElementSibling.content.cloneNode(true));
      show(held);
    } else if (event.target.closest("[data-close=drawer]")) closeDrawer();
  });
  // On a phone the drawer feels like a page, and "back" closes it.
  addEventListener("popstate", () => {
    if (pushed && !history.state?.drawer) hide();
  });
}

/** Return the source link for a number in an answer. */
function sourceLinkOf(target) {
  const citation = target.closest('.answer a[href^="#source-"]');
  const source = citation && document.getElementById(citation.hash.slice(1));
  source?.closest("details")?.setAttribute("open", "");
  return source?.querySelector("a[data-drawer]");
}

/** Show an address in the drawer; `from` gets the focus back when the drawer is closed. */
export async function openInDrawer(address, from) {
  const url = new URL(address, location.href);
  url.searchParams.set("drawer", "1");
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  let html = "";
  try {
    // Errors come as JSON, to be shown as a sentence; the drawer's HTML comes all the same.
    const response = await fetch(url, { signal, headers: { Accept: "application/json" } });
    if (!response.ok) throw await refusalOf(response);
    html = await response.text();
  } catch (reason) {
    // Do not leave the page: that would lose an answer that is being written here.
    if (!signal.aborted) showError(reason);
  }
  if (signal.aborted || !html) return;
  setHtml(content(), html);
  show(from);
}

function show(from) {
  // Links within the drawer do not change where the focus returns to.
  if (from && !drawer().contains(from)) opener = from;
  if (drawer().hidden && narrow.matches) {
    history.pushState({ drawer: true }, "");
    pushed = true;
  }
  drawer().hidden = false;
  const body = drawer().querySelector(".drawer-body");
  const passage = content().querySelector("#passage");
  if (passage) passage.scrollIntoView({ block: "start" });
  else body.scrollTop = 0;
  drawer().focus({ preventScroll: true });
  document.dispatchEvent(new CustomEvent("drawer-shown", { detail: content() }));
}

/** Close the drawer, and return whether it was open. */
export function closeDrawer() {
  if (drawer().hidden) return false;
  if (pushed && history.state?.drawer) history.back();
  hide();
  return true;
}

/** Return the current link to the same address as one that was redrawn meanwhile. */
function currentLink(link) {
  return link && [...document.querySelectorAll("a[data-drawer]")].find((one) => one.href === link.href && one.checkVisibility());
}

function hide() {
  request?.abort();
  pushed = false;
  drawer().hidden = true;
  content().replaceChildren();
  const back = opener?.isConnected ? opener : currentLink(opener);
  // On a phone it was opened from the sidebar, which is hidden by now.
  if (back?.checkVisibility()) back.focus();
  else document.querySelector("[data-sidebar=open]")?.focus();
  opener = null;
}
