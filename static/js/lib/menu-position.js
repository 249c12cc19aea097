// The position of a menu: at its button, within the window.
const PIXELS_TO_EDGE = 8;

/** Position a menu below its button, or above it where there is no room, and keep it within the window. */
export function positionAt(button, menu) {
  // Measured at the left edge, where it has its full width.
  menu.style.setProperty("left", "0");
  const [anchor, size] = [button.getBoundingClientRect(), menu.getBoundingClientRect()];
  const fitsBelow = anchor.bottom + size.height <= innerHeight - PIXELS_TO_EDGE;
  const left = getComputedStyle(button).direction === "rtl" ? anchor.right - size.width : anchor.left;
  const top = fitsBelow ? anchor.bottom : anchor.top - size.height;
  menu.style.setProperty("left", `${within(left, innerWidth - size.width)}px`);
  menu.style.setProperty("top", `${within(top, innerHeight - size.height)}px`);
}

function within(offset, max) {
  return Math.max(PIXELS_TO_EDGE, Math.min(offset, max - PIXELS_TO_EDGE));
}
