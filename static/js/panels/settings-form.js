// Forms of the settings that are sent without leaving the page: what comes back takes the place of what is shown.
import { elementOf } from "../lib/html.js";
import { t } from "../lib/language.js";
import { restoreFocus } from "../lib/patch.js";
import { errorMessage } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";

/** Save, test the connection or list its models, without leaving the page. */
export function enableSettingsForm() {
  document.addEventListener("change", ({ target }) => {
    if (target.matches("#model-address, #model-key")) target.form.querySelector("#list-models")?.click();
  });
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
  status.textContent = ["test", "list"].includes(submitter?.name) ? t("Testing…") : "";
  try {
    // What is wrong with a value stands in the form that comes back.
    const response = await fetch(url, { method: "POST", body, headers: { Accept: "text/html" } });
    const drawn = elementOf(await response.text());
    if (!drawn?.matches("#settings")) throw new Error(t("The server answered with status {status}.", { status: response.status }));
    const view = document.getElementById("settings");
    if (submitter?.name === "list") {
      // Somebody may be typing in the other fields meanwhile.
      view.querySelector("#model-choice").replaceWith(drawn.querySelector("#model-choice"));
      status.textContent = drawn.querySelector(".connect [role=alert]")?.textContent ?? "";
      return;
    }
    for (const open of view.querySelectorAll("details[id][open]")) {
      const same = drawn.querySelector(`#${open.id}`);
      if (same) same.open = true;
    }
    document.body.dataset.settingsVersion = drawn.dataset.version;
    const search = view.querySelector("#settings-filter");
    view.replaceWith(drawn);
    drawn.querySelector("#settings-filter").value = search.value;
    if (search.value) drawn.querySelector("#settings-filter").dispatchEvent(new Event("input", { bubbles: true }));
    // The server sends no key back: one that was only tested is still to be saved.
    if (submitter?.name === "test") drawn.querySelector("#model-key").value = form.querySelector("#model-key").value;
    const own = submitter?.id && drawn.querySelector(`#${submitter.id}`);
    if (own) own.focus();
    else restoreFocus(drawn, submitter ?? form);
  } catch (reason) {
    status.textContent = errorMessage(reason);
  } finally {
    form.ariaBusy = null;
  }
  await refreshPage();
}
