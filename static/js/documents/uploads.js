// Add documents: choosing files is enough, and files and folders can be dropped anywhere.
import { t, tn } from "../lib/language.js";
import { closable, toast } from "../lib/toast.js";
import { addToQueue } from "./upload-queue.js";

/** Upload files that are chosen or dropped. */
export function enableUploads() {
  enableDropping();
  document.addEventListener("change", (event) => {
    const input = event.target;
    if (input.form?.dataset.upload && input.type === "file") addFrom(input.form, input);
    else if (input.type === "file" && input.form && "submits" in input.form.dataset) input.form.requestSubmit();
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.upload) return;
    event.preventDefault();
    addFrom(form, form.elements.file);
  });
}

/** Add the files of a field, with the other fields of the form. */
function addFrom(form, input) {
  const fields = {};
  for (const name of ["tags", "replaces", "library_id"]) if (form.elements[name]?.value) fields[name] = form.elements[name].value;
  const hidden = (file) => file.webkitRelativePath.split("/").some((part) => part.startsWith("."));
  const files = [...input.files].filter((file) => !hidden(file));
  input.value = "";
  form.closest("details")?.removeAttribute("open");
  addAll(files, fields, t("No files found in your selection."));
}

function addAll(files, fields, messageIfNone) {
  if (files.length) addToQueue(files, fields);
  else closable(toast(messageIfNone, true));
}

function enableDropping() {
  const hint = document.getElementById("drop-hint");
  let inside = 0;
  // An image dragged within the page also counts as a file, but is none of the reader's files.
  let isOurs = false;
  addEventListener("dragstart", () => {
    isOurs = true;
  });
  addEventListener("dragend", () => {
    isOurs = false;
  });
  const bringsFiles = (event) => !isOurs && [...event.dataTransfer.types].includes("Files");
  addEventListener("dragenter", (event) => {
    if (!bringsFiles(event)) return;
    inside += 1;
    hint.hidden = false;
  });
  addEventListener("dragleave", () => {
    inside = Math.max(0, inside - 1);
    hint.hidden = inside === 0;
  });
  addEventListener("dragover", (event) => {
    if (bringsFiles(event)) event.preventDefault();
  });
  addEventListener("drop", async (event) => {
    if (!bringsFiles(event)) return;
    event.preventDefault();
    inside = 0;
    hint.hidden = true;
    // The dropped items must be read now; the contents of folders can be read later.
    const dropped = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
    const unreadable = [];
    const found = await Promise.all(dropped.filter(Boolean).map((entry) => filesIn(entry, unreadable)));
    if (unreadable.length) {
      const names = unreadable.slice(0, 3).join(", ");
      const more = unreadable.length - 3;
      const sentence = more > 0
        ? tn("The browser could not read {names} and {n} more.", "The browser could not read {names} and {n} more.", more, { names })
        : t("The browser could not read {names}.", { names });
      closable(toast(sentence, true));
      if (!found.flat().length) return;
    }
    addAll(found.flat(), {}, t("No files found in what you dropped."));
  });
}

/** Return the dropped files, including those in folders, without hidden ones. */
async function filesIn(dropped, unreadable) {
  if (dropped instanceof File) return [dropped];
  try {
    if (dropped.isFile) return [await new Promise((resolve, reject) => dropped.file(resolve, reject))];
    const reader = dropped.createReader();
    const files = [];
    for (;;) {
      // A folder is read in parts, until a part is empty.
      const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!entries.length) return files;
      for (const entry of entries) if (!entry.name.startsWith(".")) files.push(...(await filesIn(entry, unreadable)));
    }
  } catch {
    unreadable.push(dropped.name);
    return [];
  }
}
