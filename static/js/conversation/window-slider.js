// Preview another window: while the slider moves, the page shows what the model would see. Nothing is saved before Apply.
import { send } from "../lib/api.js";
import { t } from "../lib/language.js";
import { showErrorIn } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { drawView, savedView } from "./horizon.js";

// One preview request at a time; of those that come meanwhile, only the latest is sent.
// What stands for nothing chosen, and for yes and no.
const CHOICES = { "": "default", true: true, false: false };
const requests = { current: null, next: null };

/** Preview in the transcript what the window's form would change; closing it without Apply undoes the preview. */
export function enableWindow() {
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-preview]");
    if (!form) return;
    if (event.target.type === "range") readSlider(form);
    else moveSlider(form);
    requestPreview(form);
  });
  document.addEventListener("click", (event) => {
    const form = event.target.closest("form[data-preview]");
    if (!form) return;
    if (event.target.matches("[data-cancel]")) form.closest("details").open = false;
    if (!event.target.matches("[data-set]")) return;
    form.elements.max_history_turns.value = event.target.dataset.set;
    moveSlider(form);
    requestPreview(form);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.dataset.window) return;
    event.preventDefault();
    save(event.target);
  });
  document.addEventListener("toggle", opened, true);
}

function opened(event) {
  if (event.target.id !== "window") return;
  if (event.target.open) event.target.querySelector("input[type=range]").focus();
  else undoPreview(event.target.querySelector("form"));
}

/** Return the form's limit: a number, "all", or null for anything else. */
function limitOf(form) {
  const limit = form.elements.max_history_turns.value.trim().toLowerCase() || form.dataset.default;
  return limit === "all" || /^\d+$/.test(limit) ? limit : null;
}

function sliderOf(form) {
  return form.querySelector("input[type=range]");
}

/** Read the slider into the form: its far end stands for all turns. */
function readSlider(form) {
  const slider = sliderOf(form);
  const limit = slider.value === slider.max ? "all" : slider.value;
  form.elements.max_history_turns.value = limit;
  slider.setAttribute("aria-valuetext", limit === "all" ? t("all") : limit);
}

function moveSlider(form) {
  const limit = limitOf(form);
  const slider = sliderOf(form);
  if (limit === null) return;
  slider.value = limit === "all" ? slider.max : limit;
  slider.setAttribute("aria-valuetext", limit === "all" ? t("all") : limit);
}

/** Ask what the model would see and draw it; a change made meanwhile is asked for next. */
async function requestPreview(form) {
  requests.next = form;
  if (requests.current) return;
  while (requests.next) {
    requests.current = requests.next;
    requests.next = null;
    await preview(requests.current).catch(() => null);
  }
  requests.current = null;
}

async function preview(form) {
  const limit = limitOf(form);
  if (limit === null) return;
  const strategy = form.elements.history_strategy.value || form.elements.history_strategy.dataset.default;
  const query = new URLSearchParams({ max_history_turns: limit, strategy });
  const response = await fetch(`${form.dataset.preview}?${query}`);
  const data = await response.json();
  // The form may have been applied or closed meanwhile.
  if (!form.closest("details[open]")) return;
  const result = form.querySelector(".preview-result");
  if (!response.ok) {
    result.textContent = data.error.message;
    return;
  }
  document.getElementById("transcript").classList.add("previewing");
  drawView(data);
  result.textContent = t("Preview: {turns} would be sent.", { turns: data.sentence });
  document.querySelector(".horizon")?.scrollIntoView({ block: "nearest" });
}

/** Save the form's choice for the conversation, and close the form. */
async function save(form) {
  const value = form.elements.max_history_turns.value.trim().toLowerCase();
  const limit = value === "" ? "default" : value === "all" ? null : Number(value);
  try {
    const choices = [...form.querySelectorAll("select")].map((one) => [one.name, CHOICES[one.value] ?? one.value]);
    await send("PATCH", form.dataset.window, { max_history_turns: limit, ...Object.fromEntries(choices) });
  } catch (reason) {
    showErrorIn(form, reason);
    return;
  }
  const details = form.closest("details");
  // The preview is in force now: nothing is undone, and the page is drawn with it.
  document.getElementById("transcript").classList.remove("previewing");
  details.open = false;
  document.getElementById("question")?.focus();
  await refreshPage();
}

function undoPreview(form) {
  requests.next = null;
  const transcript = document.getElementById("transcript");
  form.querySelector(".error").hidden = true;
  form.querySelector(".preview-result").textContent = "";
  if (!transcript?.classList.contains("previewing")) return;
  transcript.classList.remove("previewing");
  form.reset();
  moveSlider(form);
  drawView(savedView());
}
