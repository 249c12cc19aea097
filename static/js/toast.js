// Short news at the edge of the page.

/** Show a sentence and return its element; the caller removes it, or `fade` does. */
export function toast(sentence, bad = false) {
  const element = document.createElement("div");
  element.className = bad ? "toast bad" : "toast";
  element.textContent = sentence;
  document.getElementById("toasts").append(element);
  return element;
}

/** Remove a toast when it has been read. */
export function fade(element) {
  setTimeout(() => element.remove(), element.classList.contains("bad") ? 15000 : 5000);
}

/** Let a toast stay until it is closed: it says more than can be read in passing. */
export function closable(element) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = "Close";
  button.addEventListener("click", () => element.remove());
  element.append(button);
}

/** Show what went wrong: the server's sentence, or that there was no server. */
export function complainAbout(reason) {
  fade(toast(sentenceOf(reason), true));
}

/** Return an error as a sentence for people. */
export function sentenceOf(reason) {
  return reason instanceof TypeError ? "The server cannot be reached." : reason.message;
}
