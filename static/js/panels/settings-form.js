// Forms of the settings that are sent without leaving the page: what comes back takes the place of what is shown.
import { elementOf } from "../lib/html.js";
import { t } from "../lib/language.js";
import { restoreFocus } from "../lib/patch.js";
import { errorMessage } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";

/** Save, or test the connection, without leaving the page. */
export function enableSettingsForm() {
  document.addEventListener("submit", (event) => {
    if (!("settingsForm" in event.target.dataset)) return;
    event.preventDefault();
    if (event.target.ariaBusy !== "true") submit(event.target, event.submitter);
  });
}

async function submit(form, submitter) {
  const status = form.querySelector("[role=status]");
  const url = new URL(form.action);
  url.searchParams.set("drawer", "1");
  const body = new URLSearchParams(new FormData(form, submitter));
  form.ariaBusy = "true";
  form.querySelector("[role=alert]")?.remove();
  status.textContent = submitter?.name === "test" ? t("Testing…") : "";
  try {
    // What is wrong with a value stands in the form that comes back.
    const response = await fetch(url, { method: "POST", body, headers: { Accept: "text/html" } });
    const drawn = elementOf(await response.text());
    if (!drawn?.matches("#settings")) throw new Error(t("The server answered with status {status}.", { status: response.status }));
    const view = document.getElementById("settings");
    drawn.querySelector("#all-settings").open = view.querySelector("#all-settings").open;
    document.body.dataset.settingsVersion = drawn.dataset.version;
    view.replaceWith(drawn);
    // The server sends no key back: one that was only tested is still to be saved.
    if (submitter?.name === "test") drawn.querySelector("#model-key").value = form.querySelector("#model-key").value;
    restoreFocus(drawn, submitter ?? form);
  } catch (reason) {
    status.textContent = errorMessage(reason);
  } finally {
    form.ariaBusy = null;
  }
  await refreshPage();
}
