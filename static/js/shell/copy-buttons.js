// Copy what a page holds: an answer as Markdown, a piece of code, the request of a receipt or the command that sends it.
import { send } from "../lib/api.js";
import { copyText } from "../lib/clipboard.js";
import { complainAbout, fade, toast } from "../lib/toast.js";

const SECONDS_OF_PRAISE = 2;
// What a control copies, by the attribute that says so; those that have to ask the server say in a note that it is done.
const COPIES = {
  copyCode: (button) => button.closest(".code").querySelector("pre").textContent,
  copyLine: (button) => button.parentElement.querySelector(".line").textContent,
  copyAnswer: async (button) => (await readJson(button.dataset.copyAnswer)).answer,
  copyRequest: async (button) => JSON.stringify((await readJson(button.dataset.copyRequest)).request, null, 2),
  copyText: async (link) => (await send("GET", link.href)).text(),
};

/** Let every control that copies do so. */
export function enableCopying() {
  document.addEventListener("click", async (event) => {
    const control = event.target.closest("button, a");
    const kind = control && Object.keys(COPIES).find((name) => name in control.dataset);
    if (!kind || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    try {
      await copyText(await COPIES[kind](control));
      if (control.dataset.copied) fade(toast(control.dataset.copied));
      else praise(control);
    } catch (reason) {
      complainAbout(reason);
    }
  });
}

async function readJson(url) {
  return (await send("GET", url)).json();
}

/** Say on the button itself, for a moment, that it is done. */
function praise(button) {
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy";
  }, SECONDS_OF_PRAISE * 1000);
}
