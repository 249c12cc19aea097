// Earlier turns load as the reader scrolls up; what is being read stays where it is.
import { documentOf } from "../lib/html.js";
import { drawView, savedView } from "./horizon.js";

const PIXELS_AHEAD = "600px 0px 0px 0px";

/** Load earlier turns before their link comes into view. */
export function enableEarlierTurns() {
  const transcript = document.getElementById("transcript");
  if (!transcript) return;
  const observer = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) load(target, observer);
  }, { root: document.getElementById("main"), rootMargin: PIXELS_AHEAD });
  // Not before the page stands at its end: at its very beginning every link would be in view.
  requestAnimationFrame(() => requestAnimationFrame(() => observe(observer)));
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".earlier a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    load(link.parentElement, observer);
  });
}

function observe(observer) {
  const link = document.querySelector(".earlier:has(a)");
  if (link) observer.observe(link);
}

async function load(holder, observer) {
  if (holder.classList.contains("waiting")) return;
  observer.unobserve(holder);
  holder.classList.add("waiting");
  const response = await fetch(holder.querySelector("a").href).catch(() => null);
  const html = response?.ok ? await response.text().catch(() => null) : null;
  holder.classList.remove("waiting");
  if (html === null || !holder.isConnected) return;
  const drawn = documentOf(html).getElementById("transcript");
  const main = document.getElementById("main");
  const anchor = [...document.querySelectorAll("#transcript .turn")].find((turn) => turn.getBoundingClientRect().bottom > 0);
  const before = anchor?.getBoundingClientRect().top;
  const known = new Set([...document.querySelectorAll("#transcript .turn")].map((turn) => turn.dataset.turn));
  // The link at the other end leads to turns that are already here.
  const isNew = (one) => one.matches(".turn") ? !known.has(one.dataset.turn) : one.matches(".later") === holder.matches(".later");
  const parts = [...drawn.querySelectorAll(".earlier, .turn")].filter(isNew);
  holder.replaceWith(...parts.map((one) => document.adoptNode(one)));
  const view = savedView();
  if (view && !document.getElementById("transcript").classList.contains("previewing")) drawView(view);
  if (anchor) main.scrollTop += anchor.getBoundingClientRect().top - before;
  observe(observer);
}
