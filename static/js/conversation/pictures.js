// Pictures beside a question: chosen or pasted, listed below the box, and sent as data URLs.
import { t } from "../lib/language.js";
import { composer, showComposerError } from "./composer.js";

const KINDS = ["image/png", "image/jpeg", "image/webp"];
const attached = [];

/** Let pictures be chosen and pasted, where the model takes any. */
export function enablePictures() {
  const input = composer()?.querySelector("input[data-pictures]");
  if (!input) return;
  input.addEventListener("change", () => {
    attach([...input.files]);
    input.value = "";
  });
  composer().elements.question.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files].filter((file) => KINDS.includes(file.type));
    if (!files.length) return;
    event.preventDefault();
    attach(files);
  });
}

/** Return what is attached, each with its `name` and `url`, and attach nothing any more. */
export function takePictures() {
  const taken = attached.splice(0);
  draw();
  return taken;
}

/** Attach again what was taken and not accepted. */
export function restorePictures(taken) {
  attached.unshift(...taken);
  draw();
}

async function attach(files) {
  const limits = composer().querySelector("[data-pictures]").dataset;
  showComposerError(null);
  for (const file of files) {
    if (!KINDS.includes(file.type) || file.size > Number(limits.maxBytes)) {
      showComposerError(t("“{name}” can’t be attached. Use PNG, JPEG or WebP, up to 5 MB.", { name: file.name }));
    } else if (attached.length >= Number(limits.pictures)) {
      showComposerError(t("A question can have up to {n} pictures.", { n: limits.pictures }));
    } else {
      attached.push({ name: file.name, url: await dataUrlOf(file) });
    }
  }
  draw();
}

function dataUrlOf(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

function draw() {
  const list = composer()?.querySelector(".attached");
  if (!list) return;
  list.replaceChildren(...attached.map((picture) => {
    const [item, remove] = [document.createElement("li"), document.createElement("button")];
    remove.type = "button";
    remove.className = "quiet";
    remove.textContent = "×";
    remove.setAttribute("aria-label", t("Remove {name}", { name: picture.name }));
    remove.addEventListener("click", () => {
      attached.splice(attached.indexOf(picture), 1);
      draw();
      composer().elements.question.focus();
    });
    item.append(picture.name, remove);
    return item;
  }));
  list.hidden = !attached.length;
}
