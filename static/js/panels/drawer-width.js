// The width of the drawer: drag its edge, or use the arrow keys. The browser remembers it.
const MIN_WIDTH = 320;
const STEP = 32;
const KEY = "drawer-width";

const edge = () => document.getElementById("drawer-edge");
const drawer = () => document.getElementById("drawer");

/** Make the edge of the drawer draggable. */
export function enableDrawerWidth() {
  const saved = Number(savedWidth());
  if (saved) setWidth(saved);
  edge().addEventListener("pointerdown", (event) => {
    edge().setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  edge().addEventListener("pointermove", (event) => {
    if (!edge().hasPointerCapture(event.pointerId)) return;
    const box = drawer().getBoundingClientRect();
    setWidth(isRightToLeft() ? event.clientX - box.left : box.right - event.clientX);
  });
  edge().addEventListener("lostpointercapture", save);
  edge().addEventListener("keydown", (event) => {
    const wider = isRightToLeft() ? "ArrowRight" : "ArrowLeft";
    const narrower = isRightToLeft() ? "ArrowLeft" : "ArrowRight";
    const width = drawer().offsetWidth;
    const next = { [wider]: width + STEP, [narrower]: width - STEP, Home: MIN_WIDTH, End: maxWidth() }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    setWidth(next);
    save();
  });
  new ResizeObserver(updateAria).observe(drawer());
}

function isRightToLeft() {
  return getComputedStyle(drawer()).direction === "rtl";
}

function maxWidth() {
  return Math.max(MIN_WIDTH, Math.round(innerWidth * 0.7));
}

function setWidth(width) {
  const pixels = Math.round(Math.max(MIN_WIDTH, Math.min(maxWidth(), width)));
  drawer().style.setProperty("--drawer-width", `${pixels}px`);
  updateAria();
}

function updateAria() {
  if (drawer().hidden) return;
  edge().setAttribute("aria-valuemin", String(MIN_WIDTH));
  edge().setAttribute("aria-valuemax", String(maxWidth()));
  edge().setAttribute("aria-valuenow", String(drawer().offsetWidth));
}

function save() {
  try {
    localStorage.setItem(KEY, String(drawer().offsetWidth));
  } catch {
    // A browser that keeps nothing forgets the width with the page.
  }
}

function savedWidth() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
