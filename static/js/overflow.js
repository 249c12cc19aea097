// Ask what shall happen when a question would leave turns out.
import { watchDoing } from "./doing.js";

/** Ask, and return {choice, remember}; null if the person wants to think about it. */
export function decide({ sentence, figures, options }) {
  const dialog = document.getElementById("overflow");
  const form = dialog.querySelector("form");
  form.querySelector(".message").textContent = sentence;
  form.querySelector(".would-send").textContent = figures;
  form.querySelector(".not-compact").hidden = "compact" in options;
  for (const button of form.querySelectorAll("[name=on_overflow]")) button.closest("li").hidden = !(button.value in options);
  form.reset();
  dialog.returnValue = "";
  const asking = new AbortController();
  const whileAsking = { signal: asking.signal };
  return new Promise((resolve) => {
    form.addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        dialog.close(event.submitter.value);
      },
      whileAsking,
    );
    form.querySelector("[data-cancel]").addEventListener("click", () => dialog.close(""), whileAsking);
    dialog.addEventListener(
      "close",
      () => {
        asking.abort();
        const choice = dialog.returnValue;
        if (choice === "compact") watchDoing();
        resolve(choice ? { choice, remember: form.elements.remember.checked } : null);
      },
      whileAsking,
    );
    dialog.showModal();
  });
}
