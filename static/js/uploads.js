// Add documents: from the form, or by dropping files and folders anywhere.
import { refusalOf } from "./api.js";
import { redrawList } from "./documents.js";
import { closable, fade, sentenceOf, toast } from "./toast.js";

const SECONDS_BETWEEN_LOOKS = 1;

/** Upload in place what is chosen or dropped. */
export function enableUploads() {
  const hint = document.getElementById("drop-hint");
  const bringsFiles = (event) => [...event.dataTransfer.types].includes("Files");
  let inside = 0;
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
    // What was dropped can be asked for only now; what is in folders comes later.
    const dropped = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
    const found = await Promise.all(dropped.filter(Boolean).map(filesIn));
    uploadAll(found.flat(), {});
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.upload) return;
    event.preventDefault();
    const { file: _, ...fields } = Object.fromEntries(new FormData(form));
    const files = [...form.elements.file.files];
    form.reset();
    form.closest("details")?.removeAttribute("open");
    uploadAll(files, fields);
  });
}

/** Return the files that were dropped, those in folders included; hidden ones are not meant. */
async function filesIn(dropped) {
  if (dropped instanceof File) return [dropped];
  if (dropped.isFile) return [await new Promise((resolve, reject) => dropped.file(resolve, reject))];
  const reader = dropped.createReader();
  const files = [];
  for (;;) {
    // A folder is read in parts, until a part is empty.
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!entries.length) return files;
    for (const entry of entries) if (!entry.name.startsWith(".")) files.push(...(await filesIn(entry)));
  }
}

/** Upload one after another, with what else is said about them. */
async function uploadAll(files, fields) {
  if (files.length === 1) return uploadOne(files[0], fields);
  const news = toast(files.length ? `0 of ${files.length} uploaded` : "There is no file in it.", !files.length);
  const refused = document.createElement("ul");
  let uploaded = 0;
  for (const file of files) {
    try {
      await upload(file, fields);
      uploaded += 1;
    } catch (reason) {
      const item = document.createElement("li");
      item.textContent = `${file.name}: ${sentenceOf(reason)}`;
      refused.append(item);
    }
    news.textContent = `${uploaded} of ${files.length} uploaded`;
    if (refused.children.length) news.append(". Refused:", refused);
    if (uploaded === 1) await redrawList();
  }
  await redrawList();
  if (refused.children.length) {
    news.classList.add("bad");
    closable(news);
  } else fade(news);
  return undefined;
}

async function uploadOne(file, fields) {
  const news = toast(`${file.name}: uploading`);
  try {
    const data = await upload(file, fields);
    await redrawList();
    await watch(data.document_id, file.name, news);
    await redrawList();
  } catch (reason) {
    news.classList.add("bad");
    news.textContent = `${file.name}: ${sentenceOf(reason)}`;
  }
  fade(news);
}

async function upload(file, fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("file", file);
  const response = await fetch("/api/documents", { method: "POST", body: form });
  if (!response.ok) throw await refusalOf(response);
  return response.json();
}

/** Say how far a document has come until it is worked on no more. */
async function watch(id, name, news) {
  for (;;) {
    const response = await fetch(`/api/documents/${id}`);
    // A newer version goes where the older one is, when it is ready.
    if (!response.ok) return;
    const data = await response.json();
    if (data.state === "embedding") news.textContent = `${name}: found by its words; embedding ${data.embedded} of ${data.chunks}`;
    else news.textContent = `${name}: ${data.state === "failed" ? data.reason : data.state}`;
    if (data.state === "failed") news.classList.add("bad");
    if (data.state === "ready" && data.reason) news.textContent = `${name}: ready. ${data.reason}`;
    if (["ready", "failed", "cancelled"].includes(data.state)) return;
    await new Promise((resolve) => setTimeout(resolve, SECONDS_BETWEEN_LOOKS * 1000));
  }
}
