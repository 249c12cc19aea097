// The line where the model's view begins: moved when a turn has ended, as the server says.

/** Ask the server where the view of the next question begins; null if it does not say. */
export async function askForView() {
  const { view } = document.getElementById("transcript").dataset;
  const response = view && (await fetch(view));
  return response?.ok ? (await response.json()).view : null;
}

/** Put the line where a view begins. */
export function drawHorizon(view) {
  const transcript = document.getElementById("transcript");
  transcript.querySelector(".horizon")?.remove();
  const first = view.turns_dropped ? (view.first_visible_turn ?? Infinity) : 0;
  for (const turn of transcript.querySelectorAll(".turn")) {
    turn.classList.toggle("beyond", Number(turn.dataset.turn) < first);
  }
  if (!view.turns_dropped) return;
  const line = document.getElementById("horizon-template").content.firstElementChild.cloneNode(true);
  line.querySelector(".kept").textContent = view.turns_kept;
  line.querySelector(".total").textContent = view.turns_kept + view.turns_dropped;
  const below = transcript.querySelector(`.turn[data-turn="${view.first_visible_turn}"]`);
  if (below) below.before(line);
  else if (view.first_visible_turn === null) transcript.append(line);
}
