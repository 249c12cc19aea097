// Put a text on the clipboard.
import { t } from "./language.js";

/** Copy a text, falling back to the old API. Throws an Error with a sentence if neither works. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = document.createElement("textarea");
    box.value = text;
    box.className = "visually-hidden";
    document.body.append(box);
    box.select();
    const copied = document.execCommand("copy");
    box.remove();
    if (!copied) throw new Error(t("Your browser does not allow copying."));
  }
}
