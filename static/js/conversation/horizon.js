// What the model sees, drawn into the transcript: the line where its view begins, what is dimmed, the gauge.
import { drawGauge } from "./gauge.js";

/** Return the saved view, as the server last sent it; null for a new conversation. */
export function savedView() {
  const { view } = document.getElementById("transcript").dataset;
  return view ? JSON.parse(view) : null;
}

/** Draw a view: the saved one, or a preview. */
export function drawView(view) {
  const transcript = document.getElementById("transcript");
  for (const turn of transcript.querySelectorAll(".turn:not(.running)")) {
    turn.classList.toggle("beyond", !sees(view, Number(turn.dataset.turn)));
  }
  drawLine(transcript, view);
  drawGauge(view.tokens);
}

function sees(view, number) {
  return view.kept_turns.some(([first, last]) => first <= number && number <= last);
}

function drawLine(transcript, view) {
  const current = transcript.querySelector(".horizon");
  const summary = transcript.querySelector(".summary");
  const below = firstBelow(transcript, view);
  if (below === undefined) {
    current?.remove();
    if (summary) summary.hidden = true;
    return;
  }
  const line = current ?? document.getElementById("horizon-template").content.firstElementChild.cloneNode(true);
  line.querySelector(".sentence").textContent = view.sentence;
  if (!line.isConnected || line.nextElementSibling !== below) transcript.insertBefore(line, below);
  if (!summary) return;
  summary.hidden = false;
  if (line.previousElementSibling !== summary) line.before(summary);
}

/** Return what stands below the line, null for the transcript's end; undefined where there is no line here. */
function firstBelow(transcript, view) {
  if (!view.has_horizon) return undefined;
  if (view.horizon !== null) return transcript.querySelector(`.turn[data-turn="${view.horizon}"]`) ?? undefined;
  const turns = [...transcript.querySelectorAll(".turn:not(.running)")];
  if (!turns.length) return undefined;
  let next = turns.at(-1).nextElementSibling;
  while (next?.matches(".horizon, .summary")) next = next.nextElementSibling;
  return next;
}
