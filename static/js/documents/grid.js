// A table over documents: its cells fill in while they are being answered.
import { documentOf } from "../lib/html.js";
import { poll } from "../lib/polling.js";

const interval = { seconds: 1.5 };
const parts = ".page-header, #grid-figures, #grid-used, .grid tbody td";

/** Keep the cells of a table up to date for as long as some are waiting. */
export function enableGrid() {
  poll(async () => {
    if (document.getElementById("grid")?.dataset.busy !== "yes") return;
    const response = await fetch(location.href);
    const drawn = response.ok ? documentOf(await response.text()).getElementById("grid") : null;
    if (drawn) update(document.getElementById("grid"), drawn);
  }, interval);
}

/** Replace each part that has changed, unless somebody is using it; other rows need a new table. */
function update(now, drawn) {
  const [body, drawnBody] = [now, drawn].map((one) => one.querySelector(".grid tbody"));
  const names = (one) => [...one.rows].map((row) => row.cells[0].textContent).join("\n");
  if (names(body) !== names(drawnBody)) body.replaceWith(drawnBody.cloneNode(true));
  const fresh = [...drawn.querySelectorAll(parts)];
  let complete = true;
  [...now.querySelectorAll(parts)].forEach((one, n) => {
    if (one.isEqualNode(fresh[n])) return;
    if (one.querySelector("details[open]") || one.contains(document.activeElement)) complete = false;
    else one.replaceWith(fresh[n]);
  });
  // What somebody is using is brought up to date once it is free.
  now.dataset.busy = complete ? drawn.dataset.busy : "yes";
}
