// Ask what shall happen when a question would leave turns out.
import { send } from "../lib/api.js";
import { complain, conversationId } from "./composer.js";
import { watchOperation } from "./operation.js";

/** Send by `post(choice)`, once more if the server wants a decision first; null if the person rather keeps the question. */
export async function decided(post) {
  try {
    return await post({});
  } catch (reason) {
    if (reason.type !== "OverflowDecisionNeeded") throw reason;
    const decision = await decide(reason.details);
    if (decision === null) return null;
    const response = await post({ on_overflow: decision.choice });
    if (decision.remember) {
      const url = `/api/conversations/${conversationId()}`;
      send("PATCH", url, { on_overflow: decision.choice }).catch((trouble) => complain(trouble.message));
    }
    return response;
  }
}

/** Ask, and return {choice, remember}; null if the person wants to think about it. */
function decide({ sentence, figures, options }) {
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
        if (choice === "compact") watchOperation();
        resolve(choice ? { choice, remember: form.elements.remember.checked } : null);
      },
      whileAsking,
    );
    dialog.showModal();
  });
}
