// Put a text on the clipboard.

/** Copy a text, in the old way where the browser refuses the new one. Throws an Error that says so if neither works. */
export async function copyText(text) {
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
    if (!done) throw new Error("The browser does not let pages copy.");
  }
}
