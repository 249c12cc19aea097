// Keyboard shortcuts. The server draws their list; here is what they do.
import { composer } from "../conversation/composer.js";
import { address } from "../lib/address.js";
import { closeDrawer, openInDrawer } from "../panels/drawer.js";
import { closeOverlay, showSidebar, toggleSidebar } from "../sidebar/sidebar.js";

const list = () => document.getElementById("shortcuts");
/** What each action does. */
export const actions = {
  shortcuts: () => (list().open ? list().close() : list().showModal()),
  search: () => {
    showSidebar();
    const box = document.getElementById("q");
    box.focus();
    box.select();
  },
  command: () => composer()?.elements.question.focus(),
  new: () => document.querySelector("#sidebar .new").click(),
  "previous-turn": () => goToTurn(-1),
  "next-turn": () => goToTurn(1),
  "previous-conversation": () => goToConversation(-1),
  "next-conversation": () => goToConversation(1),
  copy: () => [...document.querySelectorAll("[data-copy-answer]")].at(-1)?.click(),
  sidebar: toggleSidebar,
  documents: () => openLink("documents"),
  settings: () => openLink("settings"),
};

/** Listen for the keys, and show the list of shortcuts on request. */
export function enableShortcuts() {
  const actionsByKeys = new Map();
  for (const one of list().querySelectorAll("[data-keys]")) actionsByKeys.set(one.dataset.keys, one.dataset.action);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-shortcuts]")) actions.shortcuts();
    // A click outside the dialog closes it.
    else if (event.target === list()) list().close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if (event.key === "Escape") {
      closeTopmost(event);
      return;
    }
    const action = actionsByKeys.get(keysOf(event));
    if (!action || (isTyping(event.target) && !event.ctrlKey && !event.altKey && !event.metaKey)) return;
    // Nothing works behind an open dialog.
    if (document.querySelector("dialog[open]") && action !== "shortcuts") return;
    // The slash itself goes into the box.
    if (action !== "command") event.preventDefault();
    actions[action]();
  });
}

/** Return the keys as the list spells them. A character that needs Shift, such as ?, is spelled without it. */
function keysOf(event) {
  const letter = event.key.length === 1 ? event.key.toUpperCase() : event.key;
  const isSymbol = event.key.length === 1 && letter === letter.toLowerCase();
  const modifiers = [];
  if (event.ctrlKey || event.metaKey) modifiers.push("Control");
  if (event.altKey) modifiers.push("Alt");
  if (event.shiftKey && !isSymbol) modifiers.push("Shift");
  return [...modifiers, letter].join("+");
}

function isTyping(target) {
  return target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio], [type=range]), textarea, select");
}

/** Dialogs and menus close by themselves; close the topmost of the rest. */
function closeTopmost(event) {
  if (document.querySelector("dialog[open], :popover-open")) return;
  if (closeOverlay() || closeDrawer()) event.preventDefault();
}

function openLink(name) {
  const link = [...document.querySelectorAll("#sidebar a[data-drawer]")].find((one) => one.pathname === address(`/${name}`));
  if (link) openInDrawer(link.href, document.activeElement);
}

function goToTurn(step) {
  const turns = [...document.querySelectorAll("#transcript .turn")];
  if (!turns.length) return;
  const top = document.getElementById("main").getBoundingClientRect().top;
  const focused = turns.indexOf(document.activeElement?.closest(".turn"));
  // If no turn has the focus, the one at the top of the view.
  const visible = turns.findIndex((turn) => turn.getBoundingClientRect().bottom > top + 80);
  const from = focused >= 0 ? focused : (visible < 0 ? turns.length : visible) + (step < 0 ? 0 : -1);
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
