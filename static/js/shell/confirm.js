// One dialog asks before anything is erased. Without scripts its question unfolds where it stands.
const dialog = () => document.getElementById("confirm");
let button = null;

/** Let what lies folded in a `.sure` be asked in the dialog; saying yes presses its button. */
export function enableConfirmations() {
  document.addEventListener("click", (event) => {
    const summary = event.target.closest(".sure > summary");
    if (!summary) return;
    event.preventDefault();
    ask(summary.parentElement);
  });
  dialog().addEventListener("close", () => {
    if (dialog().returnValue === "yes") button.form.requestSubmit(button);
    button = null;
  });
}

function ask(folded) {
  button = folded.querySelector("button");
  dialog().querySelector("h2").textContent = folded.dataset.title;
  dialog().querySelector("p").textContent = folded.querySelector("p").textContent;
  dialog().querySelector(".danger").textContent = button.textContent;
  dialog().returnValue = "";
  dialog().showModal();
}
