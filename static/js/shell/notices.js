// Notes that a person has read are put away, in this browser, for a year.

/** Let each note with a button for it be put away. */
export function enableNotes() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-put-away]");
    if (!button) return;
    document.cookie = `put_away=${button.dataset.putAway}; path=/; max-age=31536000; samesite=strict`;
    button.parentElement.remove();
  });
}
