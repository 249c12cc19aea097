// The line where the model's view begins: moved when a turn has ended, as the server says.

/** Ask where the view of the next question begins, and put the line there. */
export async function moveHorizon() {
  const transcript = document.getElementById("transcript");
  if (!transcript.dataset.view) return;
  const response = await fetch(transcript.dataset.view);
  if (response.ok) draw(transcript, (await response.json()).view);
}

function draw(transcript, view) {
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
