// The page as the server draws it now: what stands around the transcript, and what changed in it.
import { drawView, savedView } from "../conversation/horizon.js";
import { keepAtEnd } from "../conversation/scroll-position.js";
import { documentOf } from "../lib/html.js";
import { focusAgain, replaceTurn } from "../lib/patch.js";

let newest = 0;
const PARTS = ["banners", "conversation-header", "window-place", "gauge"];

/** Fetch the page once more when it comes back into view: settings and titles may have changed meanwhile. */
export function keepFrameFresh() {
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") refreshPage();
  });
}

/** Take over what the server draws of the page now. The transcript stays; what changed in it is replaced. */
export async function refreshPage() {
  newest += 1;
  const mine = newest;
  const response = await fetch(location.pathname).catch(() => null);
  const html = response?.ok ? await response.text().catch(() => null) : null;
  // What was asked for later is newer: an answer that was held up would bring back what is over.
  if (html === null || mine !== newest) return;
  const drawn = documentOf(html);
  document.title = drawn.title;
  const isWhole = PARTS.map((id) => takePart(id, drawn)).every(Boolean);
  // The list of conversations knows by itself what it takes.
  document.dispatchEvent(new CustomEvent("page-drawn", { detail: drawn }));
  const [now, then] = [document.getElementById("transcript"), drawn.getElementById("transcript")];
  if (now && then?.dataset.view) keepAtEnd(() => takeTranscript(now, then, isWhole));
}

/** Take a part as it is now; false if somebody is at work in it, so that it has to wait. */
function takePart(id, drawn) {
  const [now, then] = [document.getElementById(id), drawn.getElementById(id)];
  if (!now || !then || now.isEqualNode(then)) return true;
  if (now.contains(document.activeElement) || now.querySelector("details[open]")) return false;
  now.replaceWith(document.adoptNode(then));
  return true;
}

function takeTranscript(now, then, isWhole) {
  now.dataset.view = then.dataset.view;
  const taken = [...then.querySelectorAll(".turn")].map((drawn) => takeTurn(now, drawn));
  // What was not disturbed now is looked at again.
  now.dataset.tag = isWhole && taken.every(Boolean) ? then.dataset.tag : "";
  takeSummary(now, then.querySelector(".summary"));
  // While a window is being tried, it stays on show.
  if (!now.classList.contains("trying")) drawView(savedView());
  document.dispatchEvent(new CustomEvent("turns-taken"));
}

/** Take a turn as it is now, a new one behind the others; false if it has to wait. */
function takeTurn(transcript, drawn) {
  const known = transcript.querySelector(`.turn[data-turn="${drawn.dataset.turn}"]`);
  if (known?.matches("[data-followed]") || (known && known.dataset.marks === drawn.dataset.marks)) return true;
  // Who edits, or has a menu open, is not disturbed.
  if (known?.querySelector(".edit-question, .more[open]")) return false;
  const made = document.adoptNode(drawn.cloneNode(true));
  if (known) {
    made.hidden = known.hidden;
    replaceTurn(known, made);
    return true;
  }
  const last = [...transcript.querySelectorAll(".turn")].at(-1);
  // A page of older turns is not followed by the newest ones.
  if (last && Number(last.dataset.turn) + 1 !== Number(drawn.dataset.turn)) return true;
  transcript.querySelector(".welcome")?.remove();
  if (last) last.after(made);
  else transcript.append(made);
  return true;
}

/** Put the summary as it is now; one that is being edited stays until it is saved. */
function takeSummary(transcript, drawn) {
  const known = transcript.querySelector(".summary");
  if (known?.querySelector(".edit[open]") && drawn) return;
  const made = drawn && document.adoptNode(drawn.cloneNode(true));
  if (known && made) {
    const open = known.querySelector(".read[open]");
    const held = known.contains(document.activeElement) ? document.activeElement : null;
    known.replaceWith(made);
    if (open) made.querySelector(".read").open = true;
    if (held) focusAgain(made, held);
  } else if (made) transcript.append(made);
  else known?.remove();
}
