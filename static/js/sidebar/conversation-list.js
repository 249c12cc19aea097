// The list of conversations: older parts load on scrolling, parts far away are unloaded.
import { elementOf } from "../lib/html.js";
import { setCookie } from "../shell/theme.js";

const MARGIN = "800px 0px";
const list = () => document.getElementById("conversations");
const parts = () => [...list().querySelectorAll(".list-part")];
let observer = null;

/** Keep the list up to date, and let it grow and shrink with scrolling. */
export function enableConversations() {
  observer = new IntersectionObserver(onIntersect, { root: list(), rootMargin: MARGIN });
  sendTimeZone();
  parts().forEach(register);
  document.addEventListener("page-drawn", (event) => updateFrom(event.detail));
  document.addEventListener("click", (event) => {
    const older = event.target.closest("#conversations a.older");
    if (!older) return;
    event.preventDefault();
    loadOlder(older);
  });
  document.addEventListener("keydown", moveFocus);
}

/** Redraw every visible part, or the search results, from the server. */
export async function refreshConversations() {
  if (isBusy()) return;
  const q = searchText();
  if (q) {
    const drawn = await fetchPart(listUrl({ q }));
    if (drawn && searchText() === q) replacePart(parts()[0], drawn);
    return;
  }
  await Promise.all(parts().filter((part) => !part.dataset.unloaded).map(redraw));
}

/** Replace the whole list with the one at a URL; a rename in progress is cancelled. */
export async function showList(url, signal) {
  const drawn = await fetchPart(url, signal);
  if (!drawn) return;
  list().dispatchEvent(new CustomEvent("list-replaced"));
  for (const part of parts()) part.remove();
  list().append(drawn);
  list().scrollTop = 0;
  register(drawn);
}

/** Return the URL of the list, or of a part of it. The open conversation is listed even if it has no answer. */
export function listUrl(parameters = {}) {
  const url = new URL(list().dataset.url, location.href);
  const open = location.pathname.match(/\/conversations\/(\d+)$/)?.[1];
  for (const [name, value] of Object.entries({ open, ...parameters })) if (value) url.searchParams.set(name, value);
  url.searchParams.set("part", "1");
  return url;
}

/** Mark the open conversation, and make one row reachable with Tab. */
function markRows() {
  const links = [...list().querySelectorAll(".conversation a")];
  const path = location.pathname;
  for (const link of links) {
    if (link.pathname === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const chosen = links.find((link) => link === document.activeElement) ?? links.find((link) => link.pathname === path) ?? links[0];
  for (const link of links) setTabbable(link, link === chosen);
  hideRepeatedHeadings();
}

function setTabbable(link, tabbable) {
  for (const one of link.parentElement.querySelectorAll("a, .row-actions")) one.tabIndex = tabbable ? 0 : -1;
}

/** Move through the list with the arrow keys. */
function moveFocus(event) {
  const link = event.target.closest?.("#conversations .conversation a");
  if (!link || event.altKey || event.ctrlKey || event.metaKey) return;
  const links = [...list().querySelectorAll(".conversation a")];
  const index = links.indexOf(link);
  const next = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: links.length - 1 }[event.key];
  if (next === undefined || !links[next]) return;
  event.preventDefault();
  setTabbable(link, false);
  setTabbable(links[next], true);
  links[next].focus();
}

function searchText() {
  return document.getElementById("q").value.trim();
}

/** Tell whether a title is being edited or a menu is open: rows stay as they are meanwhile. */
function isBusy() {
  return list().querySelector(".renaming") !== null || document.getElementById("row-menu").matches(":popover-open");
}

async function updateFrom(drawn) {
  const title = drawn.getElementById("bar-title");
  if (title) document.getElementById("bar-title").textContent = title.textContent;
  const drawnList = drawn.getElementById("conversations");
  if (!drawnList || searchText() || isBusy()) return;
  if (parts().length > 1) await refreshConversations();
  else replacePart(parts()[0], document.adoptNode(drawnList.querySelector(".list-part")));
}

async function fetchPart(url, signal) {
  const response = await fetch(url, { signal }).catch(() => null);
  return response?.ok ? elementOf(await response.text()) : null;
}

async function redraw(part) {
  const drawn = await fetchPart(listUrl({ from: part.dataset.from, until: part.dataset.until }));
  if (!drawn || !part.isConnected) return;
  // What follows is in a part of its own.
  if (part.dataset.until) drawn.querySelector(".older")?.remove();
  replacePart(part, drawn);
}

function replacePart(part, drawn) {
  if (contentOf(part) === contentOf(drawn)) return;
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const row = focused?.closest(".conversation")?.dataset.conversation;
  Object.assign(drawn.dataset, part.dataset);
  delete drawn.dataset.unloaded;
  part.replaceWith(drawn);
  register(drawn);
  if (!row) return;
  const same = drawn.querySelector(`[data-conversation="${row}"] ${focused.matches("a") ? "a" : "button"}`);
  (same ?? drawn.querySelector(".conversation a"))?.focus({ preventScroll: true });
}

/** Return what a reader sees of a part, to tell whether it has changed. */
function contentOf(part) {
  const ids = [...part.querySelectorAll(".conversation")].map((row) => row.dataset.conversation);
  return `${ids} ${part.textContent}`;
}

function register(part) {
  observer.observe(part);
  const older = part.querySelector(".older");
  if (older) observer.observe(older);
  markRows();
}

function onIntersect(entries) {
  for (const { target, isIntersecting } of entries) {
    if (target.matches(".older")) {
      if (isIntersecting && target.isConnected) loadOlder(target);
    } else if (isIntersecting && target.dataset.unloaded) redraw(target);
    else if (!isIntersecting && canUnload(target)) unload(target);
  }
}

/** The first part stays, and so does the one with the focus. */
function canUnload(part) {
  return part.isConnected && part.dataset.until && part.dataset.from && !part.dataset.unloaded && !part.contains(document.activeElement);
}

/** Empty a part that is far away, but keep its height. */
function unload(part) {
  part.style.setProperty("block-size", `${part.offsetHeight}px`);
  part.dataset.unloaded = "yes";
  part.replaceChildren();
}

async function loadOlder(older) {
  if (older.dataset.loading) return;
  older.dataset.loading = "yes";
  const from = new URL(older.href).searchParams.get("from");
  const drawn = await fetchPart(listUrl({ from }));
  if (!older.isConnected) return;
  if (!drawn) {
    // It stays as a link, to be tried again.
    delete older.dataset.loading;
    return;
  }
  const part = older.closest(".list-part");
  part.dataset.until = from;
  drawn.dataset.from = from;
  older.remove();
  part.after(drawn);
  register(drawn);
}

/** A day may span two parts; show its heading once. */
function hideRepeatedHeadings() {
  let last = null;
  for (const heading of list().querySelectorAll(".group h2")) {
    heading.classList.toggle("visually-hidden", heading.textContent === last);
    last = heading.textContent;
  }
}

/** Tell the server the reader's time zone. */
function sendTimeZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || document.cookie.split("; ").includes(`zone=${zone}`)) return;
  setCookie("zone", zone);
  // So far the server has grouped by days in UTC.
  if (new Date().getTimezoneOffset() !== 0) refreshConversations();
}
