// Where a menu stands: at its button, and never beyond the edges of the window.
const PIXELS_TO_EDGE = 8;

/** Put a menu below its button, or above it where there is no room, and move it in from the edges. */
export function placeAt(button, menu) {
  // It is measured where it has all the width that it wants.
  menu.style.setProperty("left", "0");
  const [at, own] = [button.getBoundingClientRect(), menu.getBoundingClientRect()];
  const fitsBelow = at.bottom + own.height <= innerHeight - PIXELS_TO_EDGE;
  const left = getComputedStyle(button).direction === "rtl" ? at.right - own.width : at.left;
  const top = fitsBelow ? at.bottom : at.top - own.height;
  menu.style.setProperty("left", `${within(left, innerWidth - own.width)}px`);
  menu.style.setProperty("top", `${within(top, innerHeight - own.height)}px`);
}

function within(place, most) {
  return Math.max(PIXELS_TO_EDGE, Math.min(place, most - PIXELS_TO_EDGE));
}
