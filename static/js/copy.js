// Copy the exact request of a receipt, to send it again elsewhere.
import { complainAbout, fade, toast } from "./toast.js";

/** Let the button of a receipt copy the request's JSON. */
export function enableCopying() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try {
      const response = await fetch(button.dataset.copy);
      const receipt = await response.json();
      await copy(JSON.stringify(receipt.request, null, 2));
      fade(toast("The request was copied."));
    } catch (reason) {
      complainAbout(reason);
    }
  });
}

/** Put a text on the clipboard, in the old way where the browser refuses the new one. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = document.createElement("textarea");
    box.value = text;
    box.className = "visually-hidden";
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    if (!done) throw new Error("The browser does not let pages copy. Open the receipt as JSON instead.");
  }
}
