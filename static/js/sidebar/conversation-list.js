// The list of conversations: older parts come when one scrolls to them, parts far away are let go again.
import { elementOf } from "../lib/html.js";
import { keepCookie } from "../shell/theme.js";

const REACH = "800px 0px";
const list = () => document.getElementById("conversations");
const parts = () => [...list().querySelectorAll(".list-part")];
let nearness = null;

/** Keep the list up to date, and let it grow and shrink with scrolling. */
export function enableConversations() {
  nearness = new IntersectionObserver(notice, { root: list(), rootMargin: REACH });
  tellZone();
  parts().forEach(settle);
  document.addEventListener("page-drawn", (event) => take(event.detail));
  document.addEventListener("click", (event) => {
    const older = event.target.closest("#conversations a.older");
    if (!older) return;
    event.preventDefault();
    bringOlder(older);
  });
  document.addEventListener("keydown", move);
}

/** Draw every part that is shown, or what was found, as the server has it now. */
export async function refreshConversations() {
  if (isBusy()) return;
  const q = sought();
  if (q) {
    const made = await partAt(addressOf({ q }));
    if (made && sought() === q) put(parts()[0], made);
    return;
  }
  await Promise.all(parts().filter((part) => !part.dataset.away).map(redraw));
}

/** Replace the whole list by what the server draws at an address; a title that is being written is given up. */
export async function showList(url, signal) {
  const made = await partAt(url, signal);
  if (!made) return;
  list().dispatchEvent(new CustomEvent("list-replaced"));
  for (const part of parts()) part.remove();
  list().append(made);
  list().scrollTop = 0;
  settle(made);
}

/** Return the address of the list, or of a part of it. */
export function addressOf(parameters = {}) {
  const url = new URL(list().dataset.url, location.href);
  for (const [name, value] of Object.entries(parameters)) if (value) url.searchParams.set(name, value);
  url.searchParams.set("part", "1");
  return url;
}

/** Mark the conversation that is on the page, and let one of the rows take part in the order of tabbing. */
function markRows() {
  const links = [...list().querySelectorAll(".conversation a")];
  const path = location.pathname;
  for (const link of links) {
    if (link.pathname === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const chosen = links.find((link) => link === document.activeElement) ?? links.find((link) => link.pathname === path) ?? links[0];
  for (const link of links) rove(link, link === chosen);
  hideRepeatedHeadings();
}

function rove(link, chosen) {
  for (const one of [link, link.parentElement.querySelector(".row-actions")]) one.tabIndex = chosen ? 0 : -1;
}

/** Arrows go through the list. */
function move(event) {
  const link = event.target.closest?.("#conversations .conversation a");
  if (!link || event.altKey || event.ctrlKey || event.metaKey) return;
  const links = [...list().querySelectorAll(".conversation a")];
  const place = links.indexOf(link);
  const next = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: links.length - 1 }[event.key];
  if (next === undefined || !links[next]) return;
  event.preventDefault();
  rove(link, false);
  rove(links[next], true);
  links[next].focus();
}

function sought() {
  return document.getElementById("q").value.trim();
}

/** While a title is being written, or a menu is open, the row stays. */
function isBusy() {
  return list().querySelector(".renaming") !== null || document.getElementById("row-menu").matches(":popover-open");
}

async function take(drawn) {
  const title = drawn.getElementById("bar-title");
  if (title) document.getElementById("bar-title").textContent = title.textContent;
  const own = drawn.getElementById("conversations");
  if (!own || sought() || isBusy()) return;
  if (parts().length > 1) await refreshConversations();
  else put(parts()[0], document.adoptNode(own.querySelector(".list-part")));
}

async function partAt(url, signal) {
  const response = await fetch(url, { signal }).catch(() => null);
  return response?.ok ? elementOf(await response.text()) : null;
}

async function redraw(part) {
  const made = await partAt(addressOf({ from: part.dataset.from, until: part.dataset.until }));
  if (!made || !part.isConnected) return;
  // What follows has its own part already.
  if (part.dataset.until) made.querySelector(".older")?.remove();
  put(part, made);
}

function put(part, made) {
  if (readsAs(part) === readsAs(made)) return;
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const row = focused?.closest(".conversation")?.dataset.conversation;
  Object.assign(made.dataset, part.dataset);
  delete made.dataset.away;
  part.replaceWith(made);
  settle(made);
  if (!row) return;
  const again = made.querySelector(`[data-conversation="${row}"] ${focused.matches("a") ? "a" : "button"}`);
  (again ?? made.querySelector(".conversation a"))?.focus({ preventScroll: true });
}

/** Return what a person sees of a part, by which a part that changed is known. */
function readsAs(part) {
  const ids = [...part.querySelectorAll(".conversation")].map((row) => row.dataset.conversation);
  return `${ids} ${part.textContent}`;
}

function settle(part) {
  nearness.observe(part);
  const older = part.querySelector(".older");
  if (older) nearness.observe(older);
  markRows();
}

function notice(entries) {
  for (const { target, isIntersecting } of entries) {
    if (target.matches(".older")) {
      if (isIntersecting && target.isConnected) bringOlder(target);
    } else if (isIntersecting && target.dataset.away) redraw(target);
    else if (!isIntersecting && mayGo(target)) letGo(target);
  }
}

/** The first part stays, and one in which somebody is. */
function mayGo(part) {
  return part.isConnected && part.dataset.until && part.dataset.from && !part.dataset.away && !part.contains(document.activeElement);
}

/** Leave of a part that is far away its height alone. */
function letGo(part) {
  part.style.setProperty("block-size", `${part.offsetHeight}px`);
  part.dataset.away = "yes";
  part.replaceChildren();
}

async function bringOlder(older) {
  if (older.dataset.asked) return;
  older.dataset.asked = "yes";
  const from = new URL(older.href).searchParams.get("from");
  const made = await partAt(addressOf({ from }));
  if (!older.isConnected) return;
  if (!made) {
    // It stays as a link, to be tried again.
    delete older.dataset.asked;
    return;
  }
  const part = older.closest(".list-part");
  part.dataset.until = from;
  made.dataset.from = from;
  older.remove();
  part.after(made);
  settle(made);
}

/** A day can be cut in two by a part's border; its heading stands once. */
function hideRepeatedHeadings() {
  let last = null;
  for (const heading of list().querySelectorAll(".group h2")) {
    heading.classList.toggle("visually-hidden", heading.textContent === last);
    last = heading.textContent;
  }
}

/** Let the server know in which time zone the reader's days begin. */
function tellZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || document.cookie.split("; ").includes(`zone=${zone}`)) return;
  keepCookie("zone", zone);
  // Until then the server's days are those of UTC.
  if (new Date().getTimezoneOffset() !== 0) refreshConversations();
}

