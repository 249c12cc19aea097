// The drawer at the inner edge: sources, receipts, documents and settings open in it instead of on pages of their own.
import { refusalOf } from "../lib/api.js";
import { setHtml } from "../lib/html.js";
import { complainAbout } from "../lib/toast.js";

const drawer = () => document.getElementById("drawer");
const content = () => document.getElementById("drawer-content");
const narrow = matchMedia("(max-width: 60rem)");
let opener = null;
let asking = null;
let pushed = false;

/** Open every link that is marked for it in the drawer. */
export function enableDrawer() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-drawer]") ?? sourceOf(event.target);
    const modified = event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0;
    if (link && !modified) {
      event.preventDefault();
      openInDrawer(link.href, link);
    } else if (event.target.closest("[data-close=drawer]")) closeDrawer();
  });
  // On a phone the drawer is a page of its own to whoever uses it, and "back" leads out of it.
  addEventListener("popstate", () => {
    if (pushed && !history.state?.drawer) shut();
  });
}

/** Return the link to the source that a number in an answer stands for. */
function sourceOf(target) {
  const citation = target.closest('.answer a[href^="#source-"]');
  const source = citation && document.getElementById(citation.hash.slice(1));
  source?.closest("details")?.setAttribute("open", "");
  return source?.querySelector("a[data-drawer]");
}

/** Show in the drawer what the server draws for it at an address; `from` has the focus again when it is closed. */
export async function openInDrawer(address, from) {
  const url = new URL(address, location.href);
  url.searchParams.set("drawer", "1");
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  let html = "";
  try {
    // A refusal is to be shown as a sentence; what is drawn for the drawer comes all the same.
    const response = await fetch(url, { signal, headers: { Accept: "application/json" } });
    if (!response.ok) throw await refusalOf(response);
    html = await response.text();
  } catch (reason) {
    // The page stays as it is: an answer that is being written here would be lost with it.
    if (!signal.aborted) complainAbout(reason);
  }
  if (signal.aborted || !html) return;
  setHtml(content(), html);
  // Who reads on in the drawer comes back to where it was opened from.
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

/** Close the drawer, and tell whether it was open. */
export function closeDrawer() {
  if (drawer().hidden) return false;
  if (pushed && history.state?.drawer) history.back();
  shut();
  return true;
}

/** Return the link that leads to the same place as one that was drawn anew meanwhile. */
function likeOf(link) {
  return link && [...document.querySelectorAll("a[data-drawer]")].find((one) => one.href === link.href && one.checkVisibility());
}

function shut() {
  asking?.abort();
  pushed = false;
  drawer().hidden = true;
  content().replaceChildren();
  const back = opener?.isConnected ? opener : likeOf(opener);
  // On a phone it was opened from the list, which is hidden by now.
  if (back?.checkVisibility()) back.focus();
  else document.querySelector("[data-sidebar=open]")?.focus();
  opener = null;
}
