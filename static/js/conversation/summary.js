// Save an edited summary in place.
import { send } from "../lib/api.js";
import { showErrorIn } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";

/** Save in place; a rejected text stays in the box, with the reason below it. */
export function enableSummary() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.summary) return;
    event.preventDefault();
    try {
      await send("PUT", form.dataset.summary, { text: form.elements.text.value });
    } catch (reason) {
      showErrorIn(form, reason);
      return;
    }
    form.closest("details").open = false;
    await refreshPage();
    const summary = document.getElementById("summary");
    summary?.querySelector(".read")?.setAttribute("open", "");
    summary?.focus();
  });
}
