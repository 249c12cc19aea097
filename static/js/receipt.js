// The receipt: copy what a link leads to, such as a command, in the place of opening it.
import { send } from "./api.js";
import { copyText } from "./clipboard.js";
import { complainAbout, fade, toast } from "./toast.js";

/** Let links that stand for a text copy it. */
export function enableReceipt() {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-copy-text]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    try {
      await copyText(await (await send("GET", link.href)).text());
      fade(toast(link.dataset.copyText));
    } catch (reason) {
      complainAbout(reason);
    }
  });
}
