// The look of the pages: by the system, light or dark. A cookie keeps it, so that the server draws it at once.
const SECONDS_OF_A_YEAR = 365 * 24 * 3600;

/** Keep something for the server to know with the next page. */
export function keepCookie(name, value) {
  document.cookie = `${name}=${value}; path=/; max-age=${SECONDS_OF_A_YEAR}; samesite=lax`;
}

/** Let the buttons of the theme change the page at once. */
export function enableThemes() {
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!event.target.matches(".theme") || !button) return;
    event.preventDefault();
    document.documentElement.dataset.theme = button.value;
    keepCookie("theme", button.value);
    for (const one of event.target.querySelectorAll("button")) {
      one.setAttribute("aria-pressed", String(one === button));
    }
  });
}
