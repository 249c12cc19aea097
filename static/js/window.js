// Try another window: while the slider moves, the page shows what the model would see. Nothing is saved.
import { drawView, savedView } from "./horizon.js";

const MILLISECONDS_OF_REST = 60;

/** Show in the transcript what the form in the options would change; closing the options takes it back. */
export function enableWindow() {
  let timer = null;
  let asking = null;

  const trySoon = (form) => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      asking?.abort();
      asking = new AbortController();
      await tryOut(form, asking.signal).catch(() => null);
    }, MILLISECONDS_OF_REST);
  };

  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-preview]");
    if (!form) return;
    const number = form.elements.max_history_turns;
    if (event.target.type === "range") number.value = event.target.value;
    else moveSlider(form);
    trySoon(form);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("form[data-preview] [data-set]");
    if (!button) return;
    button.form.elements.max_history_turns.value = button.dataset.set;
    moveSlider(button.form);
    trySoon(button.form);
  });
  document.addEventListener(
    "toggle",
    (event) => {
      if (event.target.id !== "options" || event.target.open) return;
      clearTimeout(timer);
      asking?.abort();
      takeBack();
    },
    true,
  );
}

/** Return what the form says: a number, "all", or null for something that is neither. */
function limitOf(form) {
  const said = form.elements.max_history_turns.value.trim().toLowerCase() || form.dataset.default;
  return said === "all" || /^\d+$/.test(said) ? said : null;
}

function moveSlider(form) {
  const limit = limitOf(form);
  const slider = form.querySelector("input[type=range]");
  if (limit !== null) slider.value = limit === "all" ? slider.max : limit;
}

async function tryOut(form, signal) {
  const limit = limitOf(form);
  if (limit === null) return;
  const query = new URLSearchParams({ max_history_turns: limit });
  const strategy = form.elements.history_strategy.value || form.elements.history_strategy.dataset.default;
  query.set("strategy", strategy);
  const response = await fetch(`${form.dataset.preview}?${query}`, { signal });
  const data = await response.json();
  const outlook = form.querySelector(".outlook");
  if (!response.ok) {
    outlook.textContent = data.error.message;
    return;
  }
  document.getElementById("transcript").classList.add("trying");
  drawView(data);
  outlook.textContent = `If you set this, ${data.sentence}.`;
  document.querySelector(".horizon")?.scrollIntoView({ block: "nearest" });
}

function takeBack() {
  const transcript = document.getElementById("transcript");
  if (!transcript?.classList.contains("trying")) return;
  transcript.classList.remove("trying");
  const form = document.querySelector("form[data-preview]");
  form.reset();
  form.querySelector(".outlook").textContent = "";
  drawView(savedView());
}
