// Try another window: while the slider moves, the page shows what the model would see. Nothing is kept before Set.
import { send } from "../lib/api.js";
import { sentenceOf } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { drawView, savedView } from "./horizon.js";

// What is being asked for, and what is wanted meanwhile: one request at a time, and the latest wish wins.
const trying = { now: null, next: null };

/** Show in the transcript what the window's form would change; closing it without Set takes that back. */
export function enableWindow() {
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-preview]");
    if (!form) return;
    if (event.target.type === "range") takeFromSlider(form);
    else moveSlider(form);
    tryOut(form);
  });
  document.addEventListener("click", (event) => {
    const form = event.target.closest("form[data-preview]");
    if (!form) return;
    if (event.target.matches("[data-cancel]")) form.closest("details").open = false;
    if (!event.target.matches("[data-set]")) return;
    form.elements.max_history_turns.value = event.target.dataset.set;
    moveSlider(form);
    tryOut(form);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.dataset.window) return;
    event.preventDefault();
    keep(event.target);
  });
  document.addEventListener("toggle", opened, true);
}

function opened(event) {
  if (event.target.id !== "window") return;
  if (event.target.open) event.target.querySelector("input[type=range]").focus();
  else takeBack(event.target.querySelector("form"));
}

/** Return what the form says: a number, "all", or null for something that is neither. */
function limitOf(form) {
  const said = form.elements.max_history_turns.value.trim().toLowerCase() || form.dataset.default;
  return said === "all" || /^\d+$/.test(said) ? said : null;
}

function sliderOf(form) {
  return form.querySelector("input[type=range]");
}

/** Take over where the slider stands: its far end stands for all turns. */
function takeFromSlider(form) {
  const slider = sliderOf(form);
  const said = slider.value === slider.max ? "all" : slider.value;
  form.elements.max_history_turns.value = said;
  slider.setAttribute("aria-valuetext", said);
}

function moveSlider(form) {
  const limit = limitOf(form);
  const slider = sliderOf(form);
  if (limit === null) return;
  slider.value = limit === "all" ? slider.max : limit;
  slider.setAttribute("aria-valuetext", limit);
}

/** Ask what the model would see and draw it; whatever is wished meanwhile is asked for next. */
async function tryOut(form) {
  trying.next = form;
  if (trying.now) return;
  while (trying.next) {
    trying.now = trying.next;
    trying.next = null;
    await preview(trying.now).catch(() => null);
  }
  trying.now = null;
}

async function preview(form) {
  const limit = limitOf(form);
  if (limit === null) return;
  const strategy = form.elements.history_strategy.value || form.elements.history_strategy.dataset.default;
  const query = new URLSearchParams({ max_history_turns: limit, strategy });
  const response = await fetch(`${form.dataset.preview}?${query}`);
  const data = await response.json();
  // It may have been set or closed while the answer was on its way.
  if (!form.closest("details[open]")) return;
  const outlook = form.querySelector(".outlook");
  if (!response.ok) {
    outlook.textContent = data.error.message;
    return;
  }
  document.getElementById("transcript").classList.add("trying");
  drawView(data);
  outlook.textContent = `Not set yet. If you set this, ${data.sentence}.`;
  document.querySelector(".horizon")?.scrollIntoView({ block: "nearest" });
}

/** Let the conversation keep what the form says, and close it. */
async function keep(form) {
  const said = form.elements.max_history_turns.value.trim().toLowerCase();
  const limit = said === "" ? "default" : said === "all" ? null : Number(said);
  try {
    await send("PATCH", form.dataset.window, {
      max_history_turns: limit,
      history_strategy: form.elements.history_strategy.value || "default",
    });
  } catch (reason) {
    const error = form.querySelector(".error");
    error.textContent = sentenceOf(reason);
    error.hidden = false;
    return;
  }
  const details = form.closest("details");
  // What was tried holds now: nothing is taken back, and the page is drawn with it.
  document.getElementById("transcript").classList.remove("trying");
  details.open = false;
  document.getElementById("question")?.focus();
  await refreshPage();
}

function takeBack(form) {
  trying.next = null;
  const transcript = document.getElementById("transcript");
  form.querySelector(".error").hidden = true;
  form.querySelector(".outlook").textContent = "";
  if (!transcript?.classList.contains("trying")) return;
  transcript.classList.remove("trying");
  form.reset();
  moveSlider(form);
  drawView(savedView());
}
