// Short news at the edge of the page. They wait while somebody reads them or reaches for their button.
const SECONDS_SHOWN = { plain: 5, bad: 15, undoable: 12 };

/** Show a sentence and return its element; the caller removes it, or `fade` does. */
export function toast(sentence, bad = false) {
  const element = document.createElement("div");
  element.className = bad ? "toast bad" : "toast";
  if (bad) element.setAttribute("role", "alert");
  element.textContent = sentence;
  document.getElementById("toasts").append(element);
  return element;
}

/** Remove a toast when it has been read; its time stands still while the pointer or the focus is on it. */
export function fade(element, seconds = SECONDS_SHOWN[element.classList.contains("bad") ? "bad" : "plain"]) {
  let timer = null;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => element.remove(), seconds * 1000);
  };
  const stay = () => clearTimeout(timer);
  for (const name of ["pointerenter", "focusin"]) element.addEventListener(name, stay);
  for (const name of ["pointerleave", "focusout"]) element.addEventListener(name, wait);
  if (!element.querySelector(".dismiss")) element.prepend(cross(element));
  wait();
}

/** Let a toast stay until it is closed: it says more than can be read in passing. */
export function closable(element) {
  element.append(button("Close", "quiet dismiss", () => element.remove()));
}

/** Return a small button that takes a toast away; its cross is drawn by the style sheet. */
function cross(element) {
  const made = button("", "icon-button dismiss", () => element.remove());
  made.setAttribute("aria-label", "Dismiss");
  return made;
}

/** Tell what was done, with a button that takes it back. */
export function undoable(sentence, undo) {
  const element = toast(sentence);
  const take = button("Undo", "undo", async () => {
    element.remove();
    await Promise.resolve(undo()).catch(complainAbout);
  });
  element.append(take);
  fade(element, SECONDS_SHOWN.undoable);
  return element;
}

function button(words, kind, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = kind;
  made.textContent = words;
  made.addEventListener("click", act);
  return made;
}

/** Show what went wrong: the server's sentence, or that there was no server. */
export function complainAbout(reason) {
  const element = toast(sentenceOf(reason), true);
  element.classList.toggle("unreachable", reason instanceof TypeError);
  fade(element);
}

/** The server has been reached: what says the opposite is over. */
export function reached() {
  for (const element of document.querySelectorAll(".unreachable")) element.hidden = true;
}

/** Return an error as a sentence for people. */
export function sentenceOf(reason) {
  return reason instanceof TypeError ? "The server cannot be reached." : reason.message;
}
