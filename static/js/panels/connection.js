// Test connection: asks the endpoints of the settings, and shows what came of it in place.
import { refusalOf } from "../lib/api.js";
import { elementOf } from "../lib/html.js";
import { t } from "../lib/language.js";
import { errorMessage } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";

/** Test the connection without leaving the page. */
export function enableConnectionTest() {
  document.addEventListener("submit", (event) => {
    if (!("connectionTest" in event.target.dataset)) return;
    event.preventDefault();
    if (event.target.ariaBusy !== "true") test(event.target);
  });
}

async function test(form) {
  const result = form.querySelector("[role=status]");
  const url = new URL(form.action);
  url.searchParams.set("drawer", "1");
  form.ariaBusy = "true";
  result.textContent = t("Testing…");
  try {
    // Errors come as JSON, to be shown as a sentence; the settings come as HTML all the same.
    const response = await fetch(url, { method: "POST", headers: { Accept: "application/json" } });
    if (!response.ok) throw await refusalOf(response);
    const drawn = elementOf(await response.text()).querySelector(".connect [role=status]");
    result.replaceChildren(...drawn.childNodes);
  } catch (reason) {
    result.textContent = errorMessage(reason);
  } finally {
    form.ariaBusy = null;
  }
  await refreshPage();
}
