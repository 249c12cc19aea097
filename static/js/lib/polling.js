// Looks that are made again and again: one at a time, and none while nobody sees the page.

/** Look every `pace.seconds` for as long as the page lives; a look that fails is followed by the next. */
export function keepLooking(look, pace) {
  setTimeout(async () => {
    if (document.visibilityState === "visible") await look().catch(() => null);
    keepLooking(look, pace);
  }, pace.seconds * 1000);
}
