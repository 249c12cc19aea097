// Pin, exclude and erase turns in place; the menu closes afterwards.
import { send } from "../lib/api.js";
import { showError } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { redrawTurn } from "./turn.js";

/** Let the menu of each turn work without leaving the page. */
export function enableTurnFlags() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.mark) return;
    event.preventDefault();
    const { name, value, dataset } = event.submitter;
    try {
      if (dataset.erase) await send("DELETE", dataset.erase);
      else await send("PATCH", form.dataset.mark, { [name]: value === "true" });
    } catch (reason) {
      showError(reason);
      return;
    }
    const redrawn = await redrawTurn(form.closest(".turn"));
    redrawn.querySelector(".more > summary")?.focus();
    await refreshPage();
  });
}
