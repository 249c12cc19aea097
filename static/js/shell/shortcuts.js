// Keys for the whole page. Which there are stands in the list that the server draws; here is what they do.
import { closeDrawer, openInDrawer } from "../panels/drawer.js";
import { closeOverlay, showSidebar, toggleSidebar } from "../sidebar/sidebar.js";

const list = () => document.getElementById("shortcuts");
/** What each action of the list does. */
export const actions = {
  shortcuts: () => (list().open ? list().close() : list().showModal()),
  search: () => {
    showSidebar();
    const box = document.getElementById("q");
    box.focus();
    box.select();
  },
  new: () => document.querySelector("#sidebar .new").click(),
  "turn-before": () => goToTurn(-1),
  "turn-after": () => goToTurn(1),
  "conversation-before": () => goToConversation(-1),
  "conversation-after": () => goToConversation(1),
  copy: () => [...document.querySelectorAll("[data-copy-answer]")].at(-1)?.click(),
  sidebar: toggleSidebar,
  documents: () => openPart("documents"),
  settings: () => openPart("settings"),
};

/** Listen for the keys, and show their list when asked. */
export function enableShortcuts() {
  const known = new Map();
  for (const one of list().querySelectorAll("[data-keys]")) known.set(one.dataset.keys, one.dataset.action);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-shortcuts]")) actions.shortcuts();
    // A click beside the dialog closes it.
    else if (event.target === list()) list().close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if (event.key === "Escape") {
      closeTopmost(event);
      return;
    }
    const action = known.get(spelled(event));
    if (!action || (isTyping(event.target) && !event.ctrlKey && !event.altKey && !event.metaKey)) return;
    // Behind an open dialog nothing is done.
    if (document.querySelector("dialog[open]") && action !== "shortcuts") return;
    event.preventDefault();
    actions[action]();
  });
}

/** Return the keys as the list spells them. A sign that needs Shift, such as ?, is spelled without it. */
function spelled(event) {
  const letter = event.key.length === 1 ? event.key.toUpperCase() : event.key;
  const isSign = event.key.length === 1 && letter === letter.toLowerCase();
  const held = [];
  if (event.ctrlKey || event.metaKey) held.push("Control");
  if (event.altKey) held.push("Alt");
  if (event.shiftKey && !isSign) held.push("Shift");
  return [...held, letter].join("+");
}

function isTyping(target) {
  return target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio], [type=range]), textarea, select");
}

/** Dialogs and menus close by themselves; of the rest, the one on top closes. */
function closeTopmost(event) {
  if (document.querySelector("dialog[open], :popover-open")) return;
  if (closeOverlay() || closeDrawer()) event.preventDefault();
}

function openPart(name) {
  const link = [...document.querySelectorAll("#sidebar a[data-drawer]")].find((one) => one.pathname === `/${name}`);
  if (link) openInDrawer(link.href, document.activeElement);
}

function goToTurn(step) {
  const turns = [...document.querySelectorAll("#transcript .turn")];
  if (!turns.length) return;
  const top = document.getElementById("main").getBoundingClientRect().top;
  const held = turns.indexOf(document.activeElement?.closest(".turn"));
  // Without one that has the focus, the one at the top of the view.
  const seen = turns.findIndex((turn) => turn.getBoundingClientRect().bottom > top + 80);
  const from = held >= 0 ? held : (seen < 0 ? turns.length : seen) + (step < 0 ? 0 : -1);
  const turn = turns[Math.max(0, Math.min(turns.length - 1, from + step))];
  turn.tabIndex = -1;
  turn.focus({ preventScroll: true });
  turn.scrollIntoView({ block: "start" });
}

function goToConversation(step) {
  const links = [...document.querySelectorAll("#conversations .conversation a")];
  const here = links.findIndex((link) => link.getAttribute("aria-current"));
  const next = here < 0 ? links[0] : links[here + step];
  next?.click();
}
