// Refresh the page from the server: the parts around the transcript, and the turns that changed.
import { drawView, savedView } from "../conversation/horizon.js";
import { keepAtEnd } from "../conversation/scroll-position.js";
import { removeWelcome } from "../conversation/welcome.js";
import { documentOf } from "../lib/html.js";
import { replaceTurn, restoreFocus } from "../lib/patch.js";

let latest = 0;
const PARTS = ["banners", "conversation-header", "window-slot", "gauge"];

/** Refresh the page when it becomes visible: settings and titles may have changed meanwhile. */
export function refreshWhenVisible() {
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") refreshPage();
  });
}

/** Update the page from the server. The transcript stays; turns that changed are replaced. */
export async function refreshPage() {
  latest += 1;
  const request = latest;
  const response = await fetch(location.pathname).catch(() => null);
  const html = response?.ok ? await response.text().catch(() => null) : null;
  // A later request is newer: a delayed response would bring back an old state.
  if (html === null || request !== latest) return;
  const drawn = documentOf(html);
  document.title = drawn.title;
  const isComplete = PARTS.map((id) => updatePart(id, drawn)).every(Boolean);
  // The sidebar decides for itself what to update.
  document.dispatchEvent(new CustomEvent("page-drawn", { detail: drawn }));
  const [current, next] = [document.getElementById("transcript"), drawn.getElementById("transcript")];
  if (current && next?.dataset.view) keepAtEnd(() => updateTranscript(current, next, isComplete));
}

/** Update a part; false if somebody is using it, so that it has to wait. */
function updatePart(id, drawn) {
  const [current, next] = [document.getElementById(id), drawn.getElementById(id)];
  if (!current || !next || current.isEqualNode(next)) return true;
  if (current.contains(document.activeElement) || current.querySelector("details[open]")) return false;
  current.replaceWith(document.adoptNode(next));
  return true;
}

function updateTranscript(current, next, isComplete) {
  current.dataset.view = next.dataset.view;
  const updated = [...next.querySelectorAll(".turn")].map((drawn) => updateTurn(current, drawn));
  // Without its tag the next poll updates what had to wait.
  current.dataset.tag = isComplete && updated.every(Boolean) ? next.dataset.tag : "";
  updateSummary(current, next.querySelector(".summary"));
  // A window preview stays on the page.
  if (!current.classList.contains("previewing")) drawView(savedView());
  document.dispatchEvent(new CustomEvent("turns-updated"));
}

/** Update a turn, or append a new one; false if it has to wait. */
function updateTurn(transcript, drawn) {
  const current = transcript.querySelector(`.turn[data-turn="${drawn.dataset.turn}"]`);
  if (current?.matches("[data-followed]") || (current && current.dataset.marks === drawn.dataset.marks)) return true;
  // Do not disturb somebody who is editing or has a menu open.
  if (current?.querySelector(".edit-question, .more[open], .right-answer :focus")) return false;
  const next = document.adoptNode(drawn.cloneNode(true));
  if (current) {
    next.hidden = current.hidden;
    replaceTurn(current, next);
    return true;
  }
  const last = [...transcript.querySelectorAll(".turn")].at(-1);
  // The newest turns do not belong on a page of older ones.
  if (last && Number(last.dataset.turn) + 1 !== Number(drawn.dataset.turn)) return true;
  removeWelcome();
  if (last) last.after(next);
  else transcript.append(next);
  return true;
}

/** Update the summary; one that is being edited stays until it is saved. */
function updateSummary(transcript, drawn) {
  const current = transcript.querySelector(".summary");
  if (current?.querySelector(".edit[open]") && drawn) return;
  const next = drawn && document.adoptNode(drawn.cloneNode(true));
  if (current && next) {
    const open = current.querySelector(".read[open]");
    const focused = current.contains(document.activeElement) ? document.activeElement : null;
    current.replaceWith(next);
    if (open) next.querySelector(".read").open = true;
    if (focused) restoreFocus(next, focused);
  } else if (next) transcript.append(next);
  else current?.remove();
}
