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
  const seen = (number) => view.kept_turns.some(([first, last]) => first <= number && number <= last);
  for (const turn of transcript.querySelectorAll(".turn:not(.running)")) {
    turn.classList.toggle("beyond", !seen(Number(turn.dataset.turn)));
  }
  if (!view.left_out.length) return;
  const line = document.getElementById("horizon-template").content.firstElementChild.cloneNode(true);
  line.querySelector(".sentence").textContent = view.sentence;
  const below = transcript.querySelector(`.turn[data-turn="${view.horizon}"]`);
  if (below) below.before(line);
  else if (view.horizon === null) transcript.append(line);
}
