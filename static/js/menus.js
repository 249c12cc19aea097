// A menu that is opened closes as menus do: by Escape, or by a click elsewhere.

/** Close each menu marked with data-closes when the person turns away from it. */
export function enableOptions() {
  document.addEventListener("click", (event) => {
    // What is opened from a menu in the drawer needs the menu no more.
    const leads = event.target.closest("a[data-drawer]");
    for (const menu of opened()) if (leads || !menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of opened()) {
      menu.open = false;
      menu.querySelector("summary").focus();
      event.stopImmediatePropagation();
    }
  });
}

function opened() {
  return document.querySelectorAll("details[data-closes][open]");
}
