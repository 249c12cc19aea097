// Rate an answer in place, and say what would be right.
import { send } from "../lib/api.js";
import { showError } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { redrawTurn } from "./turn.js";

/** Let the thumbs below an answer, and the field for the right one, work without leaving the page. */
export function enableRatings() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!("rate" in form.dataset)) return;
    event.preventDefault();
    rate(form, Object.fromEntries(new FormData(form, event.submitter))).catch(showError);
  });
}

async function rate(form, body) {
  if (body.rating) await send("PUT", form.dataset.rate, body);
  else await send("DELETE", form.dataset.rate);
  const isSaved = "right_answer" in body;
  const field = form.closest(".right-answer");
  if (field) field.open = false;
  const turn = await redrawTurn(form.closest(".turn"));
  const details = turn.querySelector(".right-answer");
  if (isSaved) details?.querySelector("summary").focus();
  // Only a bad answer asks for a better one by itself.
  else if (body.rating === "down" && details) details.open = true;
  await refreshPage();
}
