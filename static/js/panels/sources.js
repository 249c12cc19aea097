// Sources: what a number in an answer stands for when it is pointed at, and the way from one source to the next.

const MARGIN = 8;

/** Show what is behind a number before it is opened, and let the arrow keys lead through the sources in the drawer. */
export function enableSources() {
  for (const [comes, goes] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    document.addEventListener(comes, (event) => {
      const citation = event.target.closest?.('.answer a[href^="#source-"]');
      if (citation) show(citation);
    });
    document.addEventListener(goes, (event) => {
      if (event.target.closest?.('.answer a[href^="#source-"]')) hide();
    });
  }
  addEventListener("scroll", hide, { capture: true, passive: true });
  document.addEventListener("click", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") turnTo(event);
  });
}

/** Follow the link to the source before or behind the one that is shown. */
function turnTo(event) {
  const nav = document.querySelector("#drawer:not([hidden]) .source-nav");
  const busy = event.target.closest("input, textarea, select, [role=slider], .paper");
  if (!nav || busy || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (!document.getElementById("drawer").contains(document.activeElement)) return;
  const onwards = (event.key === "ArrowRight") === (getComputedStyle(nav).direction === "ltr");
  const link = nav.querySelector(onwards ? "a[rel=next]" : "a[rel=prev]");
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
  for (const [tag, text] of [["b", chip.querySelector("bdi").textContent], ["span", chip.dataset.section], ["p", chip.dataset.passage]]) {
    const part = document.createElement(tag);
    part.textContent = text;
    part.dir = "auto";
    if (text) preview.append(part);
  }
  document.body.append(preview);
  citation.setAttribute("aria-describedby", "preview");
  place(preview, citation.getBoundingClientRect());
}

/** Put the preview below the number, or above it where there is no room. */
function place(preview, at) {
  const room = innerHeight - at.bottom - 2 * MARGIN;
  const above = preview.offsetHeight > room && at.top > room;
  preview.classList.toggle("above", above);
  const fromLeft = Math.max(MARGIN, Math.min(at.left, innerWidth - preview.offsetWidth - MARGIN));
  const rightToLeft = getComputedStyle(preview).direction === "rtl";
  const fromStart = rightToLeft ? innerWidth - fromLeft - preview.offsetWidth : fromLeft;
  preview.style.setProperty("--from-start", `${fromStart}px`);
  preview.style.setProperty("--from-top", `${above ? at.top - MARGIN : at.bottom + MARGIN}px`);
}

function hide() {
  document.getElementById("preview")?.remove();
  document.querySelector("[aria-describedby=preview]")?.removeAttribute("aria-describedby");
}
