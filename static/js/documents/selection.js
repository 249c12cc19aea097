// Selected documents in the list: how many, and actions on all of them.
import { composer, conversationId } from "../conversation/composer.js";
import { askAbout } from "../conversation/scope.js";
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
      askAbout(selectedBoxes().map((box) => Number(box.value))).catch(showError);
    }
  });
}

/** Return the checked boxes. */
function selectedBoxes() {
  return [...document.querySelectorAll(".pick input:checked")];
}

function drawSelection() {
  const form = document.getElementById("selected");
  if (!form) return;
  const count = selectedBoxes().length;
  form.classList.toggle("some", count > 0);
  form.querySelector(".how-many").textContent = count ? `${count} selected` : "";
  form.querySelector("[value=ask]").textContent = count === 1 ? "Ask about this" : `Ask about these ${count}`;
  form.querySelector("[value=delete]").textContent = `Delete ${count} permanently`;
}
