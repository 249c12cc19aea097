// The sidebar: collapsible on a wide screen, an overlay on a narrow one.
import { setCookie } from "../shell/theme.js";

const narrow = matchMedia("(max-width: 60rem)");
const root = document.documentElement;
const sidebar = () => document.getElementById("sidebar");
const backdrop = () => document.getElementById("backdrop");
const openers = () => document.querySelectorAll("[data-sidebar=open]");

/** Let the buttons show and hide the sidebar; on a narrow screen, Escape or following a link closes it. */
export function enableSidebar() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-sidebar]");
    if (button && button !== root) setShown(button.dataset.sidebar === "open");
    else if (isOverlayOpen() && event.target.closest("#sidebar a:not([target])")) hideOverlay();
  });
  // On a wider window the sidebar and the page stand side by side.
  narrow.addEventListener("change", () => isOverlayOpen() && hideOverlay());
  updateAria();
}

/** Show or hide the sidebar. */
export function toggleSidebar() {
  setShown(!isShown());
}

/** Show the sidebar. */
export function showSidebar() {
  if (!isShown()) setShown(true);
}

/** Close the overlay, and return whether it was open. */
export function closeOverlay() {
  if (!isOverlayOpen()) return false;
  setShown(false);
  return true;
}

function isOverlayOpen() {
  return sidebar().classList.contains("open");
}

function isShown() {
  return narrow.matches ? isOverlayOpen() : root.dataset.sidebar !== "closed";
}

function setShown(shown) {
  if (narrow.matches) {
    if (shown) showOverlay();
    else hideOverlay();
  } else {
    if (shown) delete root.dataset.sidebar;
    else root.dataset.sidebar = "closed";
    setCookie("sidebar", shown ? "open" : "closed");
  }
  updateAria();
  if (shown) sidebar().focus({ preventScroll: true });
  else openers()[0]?.focus();
}

function showOverlay() {
  sidebar().classList.add("open");
  backdrop().hidden = false;
  // Nothing behind it can be reached, so that the focus stays in it.
  for (const one of elementsBehind()) one.inert = true;
}

function hideOverlay() {
  sidebar().classList.remove("open");
  backdrop().hidden = true;
  for (const one of elementsBehind()) one.inert = false;
  updateAria();
}

function elementsBehind() {
  return [...document.body.children].filter((one) => !one.matches("#sidebar, #backdrop, #row-menu, .toasts, dialog"));
}

function updateAria() {
  for (const one of openers()) one.setAttribute("aria-expanded", String(isShown()));
}
