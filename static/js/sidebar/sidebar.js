// The list of conversations beside the page: folded away on a wide screen, laid over the page on a narrow one.
import { keepCookie } from "../shell/theme.js";

const narrow = matchMedia("(max-width: 60rem)");
const root = document.documentElement;
const sidebar = () => document.getElementById("sidebar");
const backdrop = () => document.getElementById("backdrop");
const openers = () => document.querySelectorAll("[data-sidebar=open]");

/** Let the buttons show and hide the list; on a narrow screen it goes again with Escape or when one has chosen. */
export function enableSidebar() {
  document.addEventListener("click", (event) => {
    const asked = event.target.closest("[data-sidebar]");
    if (asked && asked !== root) show(asked.dataset.sidebar === "open");
    else if (isOver() && event.target.closest("#sidebar a:not([target])")) hideOverlay();
  });
  // Whoever widens the window has both beside each other again.
  narrow.addEventListener("change", () => isOver() && hideOverlay());
  tell();
}

/** Show the list where it is hidden, hide it where it is shown. */
export function toggleSidebar() {
  show(!isShown());
}

/** Show the list, whatever the screen. */
export function showSidebar() {
  if (!isShown()) show(true);
}

/** Close the list if it lies over the page, and tell whether it did. */
export function closeOverlay() {
  if (!isOver()) return false;
  show(false);
  return true;
}

function isOver() {
  return sidebar().classList.contains("open");
}

function isShown() {
  return narrow.matches ? isOver() : root.dataset.sidebar !== "closed";
}

function show(wanted) {
  if (narrow.matches) {
    if (wanted) showOverlay();
    else hideOverlay();
  } else {
    if (wanted) delete root.dataset.sidebar;
    else root.dataset.sidebar = "closed";
    keepCookie("sidebar", wanted ? "open" : "closed");
  }
  tell();
  if (wanted) sidebar().focus({ preventScroll: true });
  else openers()[0]?.focus();
}

function showOverlay() {
  sidebar().classList.add("open");
  backdrop().hidden = false;
  // Nothing behind it can be reached, so that the keyboard stays in it.
  for (const one of behind()) one.inert = true;
}

function hideOverlay() {
  sidebar().classList.remove("open");
  backdrop().hidden = true;
  for (const one of behind()) one.inert = false;
  tell();
}

function behind() {
  return [...document.body.children].filter((one) => !one.matches("#sidebar, #backdrop, #row-menu, .toasts, dialog"));
}

function tell() {
  for (const one of openers()) one.setAttribute("aria-expanded", String(isShown()));
}
