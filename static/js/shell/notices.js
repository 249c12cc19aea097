// Notices can be dismissed: this browser remembers that for a year.

/** Enable the button that dismisses a notice. */
export function enableNotices() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-dismiss-notice]");
    if (!button) return;
    document.cookie = `dismissed=${button.dataset.dismissNotice}; path=/; max-age=31536000; samesite=strict`;
    button.parentElement.remove();
  });
}
