// What can be done with an answer in its place: stop it, try again, answer anew, look at another version.
import { send } from "../lib/api.js";
import { complainAbout } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { followRunningTurns, redrawTurn } from "./turn.js";

/** Let the forms below an answer work without leaving the page. */
export function enableAnswers() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const action = ["stop", "retry", "regenerate", "versions"].find((name) => name in form.dataset);
    if (!action) return;
    event.preventDefault();
    carryOut(action, form, event.submitter).catch(complainAbout);
  });
}

async function carryOut(action, form, button) {
  const turn = form.closest(".turn");
  if (action === "versions") {
    await send("POST", `${form.dataset.versions}/${button.value}/choose`, {});
    const drawn = await redrawTurn(turn);
    const [before, next] = drawn.querySelectorAll(".versions button");
    const same = button.matches(":first-of-type") ? before : next;
    (same?.disabled ? [before, next].find((one) => !one.disabled) : same)?.focus();
    await refreshPage();
    return;
  }
  await send("POST", form.dataset[action], {});
  if (action === "stop") return;
  const drawn = await redrawTurn(turn);
  drawn.querySelector(".stop")?.focus();
  followRunningTurns();
}
