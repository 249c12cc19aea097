// Search the conversations while one types. The form alone does the same on a page of its own.
import { addressOf, showList } from "./conversation-list.js";

const MILLISECONDS_OF_REST = 150;

/** Show below the box what is found for what stands in it. */
export function enableSearch() {
  const box = document.getElementById("q");
  let timer = null;
  let asking = null;

  async function look() {
    clearTimeout(timer);
    asking?.abort();
    asking = new AbortController();
    await showList(addressOf({ q: box.value.trim() }), asking.signal);
  }

  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, MILLISECONDS_OF_REST);
  });
  // Somebody typed before this ran, or the browser brought back what was typed before a reload.
  if (box.value !== box.defaultValue) look();
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-clear-search]")) return;
    event.preventDefault();
    box.value = "";
    look();
    box.focus();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      document.querySelector("#conversations .conversation a")?.focus();
    } else if (event.key === "Escape" && !event.isComposing && box.value) {
      event.preventDefault();
      event.stopPropagation();
      box.value = "";
      look();
    }
  });
}
