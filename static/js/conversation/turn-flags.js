// Pin and exclude turns in place; the menu that says so closes behind it.
import { send } from "../lib/api.js";
import { complainAbout } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { redrawTurn } from "./turn.js";

/** Let the menu of each turn work without leaving the page. */
export function enableMarks() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.mark) return;
    event.preventDefault();
    const { name, value } = event.submitter;
    try {
      await send("PATCH", form.dataset.mark, { [name]: value === "true" });
    } catch (reason) {
      complainAbout(reason);
      return;
    }
    const drawn = await redrawTurn(form.closest(".turn"));
    drawn.querySelector(".more > summary")?.focus();
    await refreshPage();
  });
}
