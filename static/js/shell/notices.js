// Notices can be dismissed: this browser remembers that for a year.
import { setCookie } from "./theme.js";

/** Enable the button that dismisses a notice. */
export function enableNotices() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-dismiss-notice]");
    if (!button) return;
    setCookie("dismissed", button.dataset.dismissNotice);
    button.parentElement.remove();
  });
}
