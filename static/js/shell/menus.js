// Menus close on Escape or on a click elsewhere, and stay at their button.
import { positionAt } from "../lib/menu-position.js";

/** Close each open menu marked with data-closes on Escape or on a click elsewhere. */
export function enableMenus() {
  document.addEventListener("click", (event) => {
    // What a menu asks in a dialog is answered there.
    if (event.target.closest("dialog")) return;
    // A link that opens the drawer closes its menu.
    const opensDrawer = event.target.closest("a[data-drawer]");
    for (const menu of openMenus()) if (opensDrawer || !menu.contains(event.target)) menu.open = false;
  });
  // Before all other listeners: Escape closes one thing, and a menu is on top.
  document.addEventListener("keydown", closeByKey, { capture: true });
  for (const name of ["toggle", "scroll"]) document.addEventListener(name, positionMenus, { capture: true, passive: true });
  addEventListener("resize", positionMenus);
}

function positionMenus() {
  for (const list of document.querySelectorAll("details[open] > .menu-list")) positionAt(list.previousElementSibling, list);
}

function closeByKey(event) {
  const menus = openMenus();
  if (event.key !== "Escape" || event.isComposing || !menus.length || document.querySelector("dialog[open]")) return;
  event.stopImmediatePropagation();
  for (const menu of menus) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
}

function openMenus() {
  return document.querySelectorAll("details[data-closes][open]");
}
