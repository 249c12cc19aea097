// A tool call of a turn that is being answered, with its result.
import { tn } from "../lib/language.js";

/** Append a step to the list, unless it is there already. */
export function showStep(list, { n, tool, arguments: args, result }) {
  if (!list || list.querySelector(`[data-step="${n}"]`)) return;
  const step = document.getElementById("step-template").content.firstElementChild.cloneNode(true);
  step.dataset.step = n;
  step.querySelector(".n").textContent = n;
  step.querySelector(".tool").textContent = tool;
  step.querySelector(".short").textContent = shorten(args);
  step.querySelector(".arguments").textContent = args;
  step.querySelector(".result-text").textContent = result ?? "";
  list.append(step);
  const count = list.querySelectorAll(".step").length;
  list.querySelector("summary").textContent = tn("Used {n} tool", "Used {n} tools", count);
}

/** Return arguments on one line, as the server draws them. */
function shorten(args) {
  try {
    const parsed = JSON.parse(args);
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return args;
    return Object.entries(parsed).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ");
  } catch {
    return args;
  }
}
