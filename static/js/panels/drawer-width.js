// The width of the drawer: its edge can be drawn, and moved with the arrow keys. The browser remembers it.
const NARROWEST = 320;
const STEP = 32;
const KEY = "drawer-width";

const edge = () => document.getElementById("drawer-edge");
const drawer = () => document.getElementById("drawer");

/** Let the edge of the drawer be moved. */
export function enableDrawerWidth() {
  const kept = Number(remembered());
  if (kept) set(kept);
  edge().addEventListener("pointerdown", (event) => {
    edge().setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  edge().addEventListener("pointermove", (event) => {
    if (!edge().hasPointerCapture(event.pointerId)) return;
    const box = drawer().getBoundingClientRect();
    set(isMirrored() ? event.clientX - box.left : box.right - event.clientX);
  });
  edge().addEventListener("lostpointercapture", keep);
  edge().addEventListener("keydown", (event) => {
    const wider = isMirrored() ? "ArrowRight" : "ArrowLeft";
    const narrower = isMirrored() ? "ArrowLeft" : "ArrowRight";
    const width = drawer().offsetWidth;
    const wanted = { [wider]: width + STEP, [narrower]: width - STEP, Home: NARROWEST, End: widest() }[event.key];
    if (wanted === undefined) return;
    event.preventDefault();
    set(wanted);
    keep();
  });
  new ResizeObserver(tell).observe(drawer());
}

function isMirrored() {
  return getComputedStyle(drawer()).direction === "rtl";
}

function widest() {
  return Math.max(NARROWEST, Math.round(innerWidth * 0.7));
}

function set(width) {
  const pixels = Math.round(Math.max(NARROWEST, Math.min(widest(), width)));
  drawer().style.setProperty("--drawer-width", `${pixels}px`);
  tell();
}

function tell() {
  if (drawer().hidden) return;
  edge().setAttribute("aria-valuemin", String(NARROWEST));
  edge().setAttribute("aria-valuemax", String(widest()));
  edge().setAttribute("aria-valuenow", String(drawer().offsetWidth));
}

function keep() {
  try {
    localStorage.setItem(KEY, String(drawer().offsetWidth));
  } catch {
    // A browser that keeps nothing forgets the width with the page.
  }
}

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
