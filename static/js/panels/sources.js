// Sources: a preview for a number in an answer, and arrow keys from one source to the next.

const MARGIN = 8;

/** Preview the source of a number on hover or focus, and let the arrow keys step through sources in the drawer. */
export function enableSources() {
  for (const [enter, leave] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    document.addEventListener(enter, (event) => {
      const citation = event.target.closest?.('.answer a[href^="#source-"]');
      if (citation) show(citation);
    });
    document.addEventListener(leave, (event) => {
      if (event.target.closest?.('.answer a[href^="#source-"]')) hide();
    });
  }
  addEventListener("scroll", hide, { capture: true, passive: true });
  document.addEventListener("click", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") step(event);
  });
}

/** Open the previous or next source. */
function step(event) {
  const nav = document.querySelector("#drawer:not([hidden]) .source-nav");
  const busy = event.target.closest("input, textarea, select, [role=slider], .paper");
  if (!nav || busy || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (!document.getElementById("drawer").contains(document.activeElement)) return;
  const forward = (event.key === "ArrowRight") === (getComputedStyle(nav).direction === "ltr");
  const link = nav.querySelector(forward ? "a[rel=next]" : "a[rel=prev]");
  if (!link) return;
  event.preventDefault();
  link.click();
}

function show(citation) {
  const chip = document.querySelector(`[id="${CSS.escape(citation.hash.slice(1))}"] .chip`);
  if (!chip) return;
  hide();
  const preview = document.createElement("div");
  preview.id = "preview";
  preview.className = "preview";
  preview.setAttribute("role", "tooltip");
  for (const [tag, text] of [["em", citation.dataset.doubt], ["b", chip.querySelector("bdi").textContent], ["span", chip.dataset.section], ["p", chip.dataset.passage]]) {
    const part = document.createElement(tag);
    part.textContent = text;
    part.dir = "auto";
    if (text) preview.append(part);
  }
  document.body.append(preview);
  citation.setAttribute("aria-describedby", "preview");
  position(preview, citation.getBoundingClientRect());
}

/** Position the preview below the number, or above it where there is no room. */
function position(preview, anchor) {
  const room = innerHeight - anchor.bottom - 2 * MARGIN;
  const above = preview.offsetHeight > room && anchor.top > room;
  preview.classList.toggle("above", above);
  const fromLeft = Math.max(MARGIN, Math.min(anchor.left, innerWidth - preview.offsetWidth - MARGIN));
  const rightToLeft = getComputedStyle(preview).direction === "rtl";
  const fromStart = rightToLeft ? innerWidth - fromLeft - preview.offsetWidth : fromLeft;
  preview.style.setProperty("--from-start", `${fromStart}px`);
  preview.style.setProperty("--from-top", `${above ? anchor.top - MARGIN : anchor.bottom + MARGIN}px`);
}

function hide() {
  document.getElementById("preview")?.remove();
  document.querySelector("[aria-describedby=preview]")?.removeAttribute("aria-describedby");
}
