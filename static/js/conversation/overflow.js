// Ask what should happen to older turns when a conversation gets too long.
import { address } from "../lib/address.js";
import { send } from "../lib/api.js";
import { summarise } from "./bill.js";
import { conversationId, showComposerError } from "./composer.js";

/** Send with `post(choice)`, and again if the server needs a decision first; null if the reader cancels. */
export async function withOverflowChoice(post) {
  try {
    return await post({});
  } catch (reason) {
    if (reason.type !== "OverflowDecisionNeeded") throw reason;
    const decision = await decide(reason.details);
    if (decision === null) return null;
    const summarised = decision.choice === "compact";
    if (summarised && !(await summarise())) return null;
    const response = summarised ? await withOverflowChoice(post) : await post({ on_overflow: decision.choice });
    if (decision.remember) {
      const url = address(`/api/conversations/${conversationId()}`);
      send("PATCH", url, { on_overflow: decision.choice }).catch((error) => showComposerError(error.message));
    }
    return response;
  }
}

/** Ask, and return {choice, remember}; null if the reader cancels. */
function decide({ sentence, figures, options, no_summary: noSummary }) {
  const dialog = document.getElementById("overflow");
  const form = dialog.querySelector("form");
  form.querySelector(".message").textContent = sentence;
  form.querySelector(".would-send").textContent = figures;
  form.querySelector(".no-summary").textContent = noSummary ?? "";
  form.querySelector(".no-summary").hidden = !noSummary;
  for (const button of form.querySelectorAll("[name=on_overflow]")) {
    button.closest("li").hidden = !(button.value in options);
    button.querySelector("span").textContent = options[button.value] ?? "";
  }
  form.reset();
  dialog.returnValue = "";
  const open = new AbortController();
  const whileOpen = { signal: open.signal };
  return new Promise((resolve) => {
    form.addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        dialog.close(event.submitter.value);
      },
      whileOpen,
    );
    form.querySelector("[data-cancel]").addEventListener("click", () => dialog.close(""), whileOpen);
    dialog.addEventListener(
      "close",
      () => {
        open.abort();
        const choice = dialog.returnValue;
        resolve(choice ? { choice, remember: form.elements.remember.checked } : null);
      },
      whileOpen,
    );
    dialog.showModal();
  });
}
