// A long list with ticks, narrowed to what is typed; what is ticked stays in sight.

/** Narrow each such list while its search box is typed into. */
export function enableTicks() {
  document.addEventListener("input", (event) => {
    if (!("narrows" in event.target.dataset)) return;
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const label of event.target.closest(".ticks").querySelectorAll("label")) {
      const text = label.textContent.toLowerCase();
      label.hidden = !label.control.checked && !words.every((word) => text.includes(word));
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && "narrows" in event.target.dataset) event.preventDefault();
  });
}
