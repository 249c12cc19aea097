// Copy what a page holds: an answer as Markdown, a piece of code, the exact request of a receipt.
import { send } from "./api.js";
import { copyText } from "./clipboard.js";
import { complainAbout, fade, toast } from "./toast.js";

const SECONDS_OF_PRAISE = 2;

/** Let every button that copies do so. */
export function enableCopying() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-answer], [data-copy-code]");
    if (!button) return;
    try {
      if ("copyCode" in button.dataset) {
        await copyText(button.closest(".code").querySelector("pre").textContent);
        praise(button);
      } else if ("copyAnswer" in button.dataset) {
        await copyText((await read(button.dataset.copyAnswer)).answer);
        fade(toast("The answer was copied as Markdown."));
      } else {
        await copyText(JSON.stringify((await read(button.dataset.copy)).request, null, 2));
        fade(toast("The request was copied."));
      }
    } catch (reason) {
      complainAbout(reason);
    }
  });
}

async function read(url) {
  return (await send("GET", url)).json();
}

/** Say on the button itself, for a moment, that it is done. */
function praise(button) {
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy";
  }, SECONDS_OF_PRAISE * 1000);
}
