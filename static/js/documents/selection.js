// Selected documents in the list: how many, and actions on all of them.
import { composer, conversationId } from "../conversation/composer.js";
import { askAbout } from "../conversation/scope.js";
import { t, tn } from "../lib/language.js";
import { showError } from "../lib/toast.js";

/** Show the actions once something is selected; an open conversation is filtered in place. */
export function enableSelection() {
  document.addEventListener("change", (event) => {
    if (event.target.matches(".pick input")) drawSelection();
  });
  document.addEventListener("library-drawn", drawSelection);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-clear-selection]")) {
      for (const box of selectedBoxes()) box.checked = false;
      drawSelection();
    } else if (event.target.matches("#selected [value=ask]") && composer() && conversationId() !== null) {
      event.preventDefault();
      askAbout(selectedBoxes().filter(isAskable).map((box) => Number(box.value))).catch(showError);
    }
  });
}

/** Return the checked boxes. */
function selectedBoxes() {
  return [...document.querySelectorAll(".pick input:checked")];
}

/** Tell whether the document of a checkbox can be searched: one that failed cannot. */
function isAskable(box) {
  return "askable" in box.dataset;
}

function drawSelection() {
  const form = document.getElementById("selected");
  if (!form) return;
  const count = selectedBoxes().length;
  const askable = selectedBoxes().filter(isAskable).length;
  form.classList.toggle("some", count > 0);
  const others = count > askable ? `, ${tn("{n} can’t be searched", "{n} can’t be searched", count - askable)}` : "";
  form.querySelector(".how-many").textContent = count ? `${tn("{n} selected", "{n} selected", count)}${others}` : "";
  const ask = form.querySelector("[value=ask]");
  ask.hidden = askable === 0;
  ask.textContent = askable === 1 ? t("Ask about this") : tn("Ask about these {n}", "Ask about these {n}", askable);
}
