// A menu that is opened closes as menus do: by Escape, or by a click elsewhere. A list stays at its button.
import { placeAt } from "../lib/menu-position.js";

/** Close each menu marked with data-closes when the person turns away from it. */
export function enableMenus() {
  document.addEventListener("click", (event) => {
    // What is opened from a menu in the drawer needs the menu no more.
    const leads = event.target.closest("a[data-drawer]");
    for (const menu of opened()) if (leads || !menu.contains(event.target)) menu.open = false;
  });
  // Before all others that listen for Escape: it closes one thing, and a menu lies on top.
  document.addEventListener("keydown", closeByKey, { capture: true });
  for (const name of ["toggle", "scroll"]) document.addEventListener(name, placeLists, { capture: true, passive: true });
  addEventListener("resize", placeLists);
}

function placeLists() {
  for (const list of document.querySelectorAll("details[open] > .menu-list")) placeAt(list.previousElementSibling, list);
}

function closeByKey(event) {
  const menus = opened();
  if (event.key !== "Escape" || event.isComposing || !menus.length || document.querySelector("dialog[open]")) return;
  event.stopImmediatePropagation();
  for (const menu of menus) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
}

function opened() {
  return document.querySelectorAll("details[data-closes][open]");
}
