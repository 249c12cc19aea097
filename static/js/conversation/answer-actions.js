// Actions on an answer, in place: stop, retry, regenerate, switch to another version.
import { send } from "../lib/api.js";
import { showError } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { followRunningTurns, redrawTurn } from "./turn.js";

const MAX_NOTE_CHARS = 1000;

/** Let the forms below an answer work without leaving the page. */
export function enableAnswerActions() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const action = ["stop", "retry", "regenerate", "versions"].find((name) => name in form.dataset);
    if (!action) return;
    event.preventDefault();
    perform(action, form, event.submitter).catch(showError);
  });
  let selected = "";
  // The click that opens the menu ends a selection.
  document.addEventListener("pointerdown", ({ target }) => {
    const turn = target.closest(".more > summary")?.closest(".turn");
    if (turn) selected = turn.contains(getSelection().anchorNode) ? String(getSelection()).trim() : "";
  });
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("a[data-remember]");
    if (!link || !selected) return;
    const place = new URL(link.href);
    place.searchParams.set("text", selected.slice(0, MAX_NOTE_CHARS));
    link.href = place.href;
  });
}

async function perform(action, form, button) {
  const turn = form.closest(".turn");
  if (action === "versions") {
    await send("POST", `${form.dataset.versions}/${button.value}/choose`, {});
    const drawn = await redrawTurn(turn);
    const [previous, next] = drawn.querySelectorAll(".versions button");
    const same = button.matches(":first-of-type") ? previous : next;
    (same?.disabled ? [previous, next].find((one) => !one.disabled) : same)?.focus();
    await refreshPage();
    return;
  }
  await send("POST", form.dataset[action], button?.name ? { [button.name]: button.value === "true" } : {});
  if (action === "stop") return;
  await redrawTurn(turn);
  followRunningTurns();
}
