// Polling: one poll at a time, and none while the page is hidden.

/** Call `check` every `interval.seconds` for as long as the page lives; a failed check is followed by the next. */
export function poll(check, interval) {
  setTimeout(async () => {
    if (document.visibilityState === "visible") await check().catch(() => null);
    poll(check, interval);
  }, interval.seconds * 1000);
}
