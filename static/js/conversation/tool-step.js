// A tool call of a turn that is being answered, with what it gave.

/** Put a step at the end of the list; one that is there already is left as it is. */
export function showStep(list, { n, tool, arguments: given, result }) {
  if (!list || list.querySelector(`[data-step="${n}"]`)) return;
  const step = document.getElementById("step-template").content.firstElementChild.cloneNode(true);
  step.dataset.step = n;
  step.querySelector(".n").textContent = n;
  step.querySelector(".tool").textContent = tool;
  step.querySelector(".short").textContent = inShort(given);
  step.querySelector(".arguments").textContent = given;
  step.querySelector(".result-text").textContent = result ?? "";
  list.append(step);
  const count = list.querySelectorAll(".step").length;
  list.querySelector(".count").textContent = count;
  list.querySelector(".tools").textContent = count === 1 ? "tool" : "tools";
}

/** Return arguments as they read in one line, as the server draws them. */
function inShort(given) {
  try {
    const read = JSON.parse(given);
    if (typeof read !== "object" || read === null || Array.isArray(read)) return given;
    return Object.entries(read).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ");
  } catch {
    return given;
  }
}
