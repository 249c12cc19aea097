// The options of a conversation close as a menu does: by Escape, or by a click elsewhere.

/** Close the options when the person turns away from them. */
export function enableOptions() {
  const opened = () => document.querySelector("#options[open]");
  document.addEventListener("click", (event) => {
    const options = opened();
    if (options && !options.contains(event.target)) options.open = false;
  });
  document.addEventListener("keydown", (event) => {
    const options = opened();
    if (event.key !== "Escape" || !options) return;
    options.open = false;
    options.querySelector("summary").focus();
  });
}
