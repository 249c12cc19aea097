// Rated answers: their questions asked again one after the other, with progress and the comparison.
import { refusalOf } from "../lib/api.js";
import { elementOf } from "../lib/html.js";
import { number, t, tn } from "../lib/language.js";
import { errorMessage } from "../lib/toast.js";

let running = null;

/** Let questions be asked again without leaving the page: one, or all that are listed, until Stop is pressed. */
export function enableRated() {
  document.addEventListener("submit", (event) => {
    if (!("askAgain" in event.target.dataset)) return;
    event.preventDefault();
    if (!running) run([event.target]);
  });
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-ask-all]")) run([...document.querySelectorAll("[data-ask-again]")].reverse());
    if (target.closest("#rated-run [data-stop]")) running?.abort();
  });
}

/** Ask the questions of some forms again, oldest first as `rag-assistant eval` does, and add up what came of them. */
async function run(forms) {
  running = new AbortController();
  const progress = document.getElementById("rated-progress");
  const rows = [];
  let trouble = "";
  buttons(true);
  try {
    for (const form of forms) {
      progress.textContent = t("Question {n} of {count} …", { n: number(rows.length + 1), count: number(forms.length) });
      rows.push(await askAgain(form, running.signal));
    }
  } catch (reason) {
    trouble = running.signal.aborted ? t("Stopped.") : errorMessage(reason);
  }
  running = null;
  buttons(false);
  const since = counted(rows.map((row) => row.dataset.since));
  const parts = [trouble, tn("{n} question: {counts}.", "{n} questions: {counts}.", rows.length, { counts: counted(rows.map((row) => row.dataset.verdict)) })];
  if (since) parts.push(t("Since the last run: {counts}.", { counts: since }));
  progress.textContent = (rows.length ? parts : [trouble]).filter(Boolean).join(" ");
}

async function askAgain(form, signal) {
  const row = form.closest("li");
  row.ariaBusy = "true";
  try {
    const response = await fetch(`${form.action}?part=1`, { method: "POST", signal });
    if (!response.ok) throw await refusalOf(response);
    const drawn = elementOf(await response.text());
    row.replaceWith(drawn);
    return drawn;
  } finally {
    row.ariaBusy = null;
  }
}

function buttons(isRunning) {
  const bar = document.getElementById("rated-run");
  bar.querySelector("[data-stop]").hidden = !isRunning;
  for (const one of [bar.querySelector("[data-ask-all]"), ...document.querySelectorAll("[data-ask-again] button")]) one.disabled = isRunning;
}

/** Return how many there are of each verdict, worst first. */
function counted(verdicts) {
  const order = JSON.parse(document.getElementById("rated-run").dataset.verdicts);
  const counts = order.map((verdict) => [verdict, verdicts.filter((one) => one === verdict).length]);
  return counts.filter(([, count]) => count).map(([verdict, count]) => `${number(count)} ${verdict.toLocaleLowerCase(document.documentElement.lang)}`).join(", ");
}
