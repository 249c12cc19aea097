// What a summary may lose: shown and chosen in a dialog before the older turns are summarised.
import { address } from "../lib/address.js";
import { refusalOf, send } from "../lib/api.js";
import { documentOf } from "../lib/html.js";
import { showErrorIn } from "../lib/toast.js";
import { conversationId } from "./composer.js";
import { watchOperation } from "./operation.js";

/** Show what would be lost, and summarise as the reader chooses; false if they cancel. */
export async function summarise() {
  const dialog = document.getElementById("bill");
  const url = address(`/conversations/${conversationId()}/bill`);
  const response = await fetch(url, { headers: { Accept: "application/json" } });
  if (!response.ok) throw await refusalOf(response);
  const form = documentOf(await response.text()).querySelector("form");
  dialog.querySelector("div").replaceChildren(form);
  dialog.returnValue = "";
  form.querySelector("[data-cancel]").addEventListener("click", () => dialog.close(""));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const data = new FormData(form);
    form.querySelector(".primary").disabled = true;
    watchOperation();
    try {
      await send("POST", form.dataset.compact, { keep: data.getAll("keep"), hint: data.get("hint") ?? "" });
      dialog.close("summarised");
    } catch (reason) {
      form.querySelector(".primary").disabled = false;
      showErrorIn(form, reason);
    }
  });
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "summarised"), { once: true });
  });
}
