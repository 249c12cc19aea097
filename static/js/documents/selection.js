// Documents that are ticked in the list: how many, and what is done with all of them.
import { composer, conversationId } from "../conversation/composer.js";
import { askAbout } from "../conversation/scope.js";
import { complainAbout } from "../lib/toast.js";

/** Show what can be done once something is ticked; a conversation that is open is asked about it in place. */
export function enableChoosing() {
  document.addEventListener("change", (event) => {
    if (event.target.matches(".pick input")) drawChoice();
  });
  document.addEventListener("library-drawn", drawChoice);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-choose-none]")) {
      for (const box of ticked()) box.checked = false;
      drawChoice();
    } else if (event.target.matches("#chosen [value=ask]") && composer() && conversationId() !== null) {
      event.preventDefault();
      askAbout(ticked().map((box) => Number(box.value))).catch(complainAbout);
    }
  });
}

/** Return the boxes that are ticked. */
export function ticked() {
  return [...document.querySelectorAll(".pick input:checked")];
}

function drawChoice() {
  const form = document.getElementById("chosen");
  if (!form) return;
  const count = ticked().length;
  form.classList.toggle("some", count > 0);
  form.querySelector(".how-many").textContent = count ? `${count} chosen` : "";
  form.querySelector("[value=ask]").textContent = count === 1 ? "Ask about this" : `Ask about these ${count}`;
  form.querySelector("[value=delete]").textContent = `Delete ${count} for good`;
}
