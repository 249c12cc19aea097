// Copy buttons: an answer as Markdown, a piece of code, a receipt's request or the command that sends it.
import { send } from "../lib/api.js";
import { copyText } from "../lib/clipboard.js";
import { t } from "../lib/language.js";
import { fade, showError, toast } from "../lib/toast.js";

const CONFIRM_SECONDS = 2;
// What a control copies, by its data attribute; those with data-copied confirm in a toast.
const COPIES = {
  copyCode: (button) => button.closest(".code").querySelector("pre").textContent,
  copyLine: (button) => button.parentElement.querySelector("code").textContent,
  copyAnswer: async (button) => (await readJson(button.dataset.copyAnswer)).answer,
  copyRequest: async (button) => JSON.stringify((await readJson(button.dataset.copyRequest)).request, null, 2),
  copyText: async (link) => (await send("GET", link.href)).text(),
};

/** Enable every copy control. */
export function enableCopyButtons() {
  document.addEventListener("click", async (event) => {
    const control = event.target.closest("button, a");
    const kind = control && Object.keys(COPIES).find((name) => name in control.dataset);
    if (!kind || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    try {
      await copyText(await COPIES[kind](control));
      if (control.dataset.copied) fade(toast(control.dataset.copied));
      else showCopied(control);
    } catch (reason) {
      showError(reason);
    }
  });
}

async function readJson(url) {
  return (await send("GET", url)).json();
}

/** Confirm on the button itself, for a moment. */
function showCopied(button) {
  button.textContent = t("Copied");
  setTimeout(() => {
    button.textContent = t("Copy");
  }, CONFIRM_SECONDS * 1000);
}
