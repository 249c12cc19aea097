// Forms of the settings that are sent without leaving the page: what comes back takes the place of what is shown.
import { elementOf } from "../lib/html.js";
import { t } from "../lib/language.js";
import { restoreFocus } from "../lib/patch.js";
import { errorMessage } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";

// The request for a list of models: whatever is sent after it takes its place, and waits for nobody.
let listing = null;

/** Save, test the connection or list its models, without leaving the page. */
export function enableSettingsForm() {
  document.addEventListener("change", ({ target }) => {
    const button = target.matches("#model-address, #model-key") && target.form.querySelector("#list-models");
    if (button && target.form.elements.openai_base_url.value && target.form.ariaBusy !== "true") submit(target.form, button);
  });
  document.addEventListener("submit", (event) => {
    if (!("settingsForm" in event.target.dataset)) return;
    event.preventDefault();
    if (event.target.ariaBusy !== "true") submit(event.target, event.submitter);
  });
}

async function submit(form, submitter) {
  listing?.abort();
  const isListing = submitter?.name === "list";
  const own = (listing = isListing ? new AbortController() : null);
  const status = form.querySelector("[role=status]");
  const url = new URL(form.action);
  url.searchParams.set("drawer", "1");
  const body = new URLSearchParams(new FormData(form, submitter));
  if (!isListing) form.ariaBusy = "true";
  form.querySelector("[role=alert]")?.remove();
  status.textContent = isListing || submitter?.name === "test" ? t("Testing…") : "";
  try {
    // What is wrong with a value stands in the form that comes back.
    const response = await fetch(url, { method: "POST", body, headers: { Accept: "text/html" }, signal: own?.signal });
    const drawn = elementOf(await response.text());
    if (!drawn?.matches("#settings")) throw new Error(t("The server answered with status {status}.", { status: response.status }));
    if (isListing) {
      // Somebody may be typing in the other fields meanwhile.
      form.querySelector("#model-choice").replaceWith(drawn.querySelector("#model-choice"));
      status.textContent = drawn.querySelector(".connect [role=alert]")?.textContent ?? "";
    } else replaceView(drawn, form, submitter);
  } catch (reason) {
    if (!own?.signal.aborted) status.textContent = errorMessage(reason);
  } finally {
    form.ariaBusy = null;
  }
  if (!isListing) await refreshPage();
}

/** Show the settings as they are now: what was unfolded stays so, and so does the search. */
function replaceView(drawn, form, submitter) {
  const view = document.getElementById("settings");
  for (const open of view.querySelectorAll("details[id][open]")) {
    const same = drawn.querySelector(`#${open.id}`);
    if (same) same.open = true;
  }
  document.body.dataset.settingsVersion = drawn.dataset.version;
  const [search, next] = [view, drawn].map((one) => one.querySelector("#settings-filter"));
  view.replaceWith(drawn);
  next.value = search.value;
  if (search.value) next.dispatchEvent(new Event("input", { bubbles: true }));
  // The server sends no key back: one that was only tested is still to be saved.
  if (submitter?.name === "test") drawn.querySelector("#model-key").value = form.querySelector("#model-key").value;
  const same = submitter?.id && drawn.querySelector(`#${submitter.id}`);
  if (same) same.focus();
  else restoreFocus(drawn, submitter ?? form);
}
