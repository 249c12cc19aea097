// Earlier turns come as one scrolls up to them; what is being read stays where it is.
import { documentOf } from "../lib/html.js";
import { drawView, savedView } from "./horizon.js";

const PIXELS_AHEAD = "600px 0px 0px 0px";

/** Load earlier turns before their link comes into view. */
export function enableEarlier() {
  const transcript = document.getElementById("transcript");
  if (!transcript) return;
  const watch = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) load(target, watch);
  }, { root: document.getElementById("main"), rootMargin: PIXELS_AHEAD });
  // Not before the page stands at its end: at its very beginning every link would be in view.
  requestAnimationFrame(() => requestAnimationFrame(() => observe(watch)));
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".earlier a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    load(link.parentElement, watch);
  });
}

function observe(watch) {
  const place = document.querySelector(".earlier:has(a)");
  if (place) watch.observe(place);
}

async function load(place, watch) {
  if (place.classList.contains("waiting")) return;
  watch.unobserve(place);
  place.classList.add("waiting");
  const response = await fetch(place.querySelector("a").href).catch(() => null);
  const html = response?.ok ? await response.text().catch(() => null) : null;
  place.classList.remove("waiting");
  if (html === null || !place.isConnected) return;
  const drawn = documentOf(html).getElementById("transcript");
  const main = document.getElementById("main");
  const anchor = [...document.querySelectorAll("#transcript .turn")].find((turn) => turn.getBoundingClientRect().bottom > 0);
  const before = anchor?.getBoundingClientRect().top;
  const known = new Set([...document.querySelectorAll("#transcript .turn")].map((turn) => turn.dataset.turn));
  // The link of the other end leads to what stands here already.
  const goesOn = (one) => one.matches(".turn") ? !known.has(one.dataset.turn) : one.matches(".later") === place.matches(".later");
  const parts = [...drawn.querySelectorAll(".earlier, .turn")].filter(goesOn);
  place.replaceWith(...parts.map((one) => document.adoptNode(one)));
  const view = savedView();
  if (view && !document.getElementById("transcript").classList.contains("trying")) drawView(view);
  if (anchor) main.scrollTop += anchor.getBoundingClientRect().top - before;
  observe(watch);
}
