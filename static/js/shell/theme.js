// The theme: system, light or dark. A cookie stores it, so that the server draws it at once.
import { address } from "../lib/address.js";

const YEAR_SECONDS = 365 * 24 * 3600;

/** Store a value for the server to read with the next page. */
export function setCookie(name, value) {
  document.cookie = `${name}=${value}; path=${address("/")}; max-age=${YEAR_SECONDS}; samesite=lax`;
}

/** Let the theme buttons change the page at once. */
export function enableThemes() {
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!event.target.matches(".theme") || !button) return;
    event.preventDefault();
    document.documentElement.dataset.theme = button.value;
    setCookie("theme", button.value);
    for (const one of event.target.querySelectorAll("button")) {
      one.setAttribute("aria-pressed", String(one === button));
    }
  });
}
