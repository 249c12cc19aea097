// Search conversations while typing. Without scripts, the form shows the results on a page of its own.
import { listUrl, showList } from "./conversation-list.js";

const DEBOUNCE_MS = 150;

/** Show the results below the box while typing. */
export function enableSearch() {
  const box = document.getElementById("q");
  let timer = null;
  let request = null;

  async function search() {
    clearTimeout(timer);
    request?.abort();
    request = new AbortController();
    await showList(listUrl({ q: box.value.trim() }), request.signal);
  }

  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, DEBOUNCE_MS);
  });
  // The reader typed before this ran, or the browser restored the text after a reload.
  if (box.value !== box.defaultValue) search();
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-clear-search]")) return;
    event.preventDefault();
    box.value = "";
    search();
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
      search();
    }
  });
}
