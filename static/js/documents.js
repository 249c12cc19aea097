// Add documents by dropping them anywhere, and watch them become ready.
import { elementOf } from "./html.js";
import { fade, sentenceOf, toast } from "./toast.js";

const SECONDS_BETWEEN_LOOKS = 1;

/** Take dropped files, upload in place, and keep the list of documents up to date. */
export function enableDocuments() {
  const hint = document.getElementById("drop-hint");
  let inside = 0;
  addEventListener("dragenter", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    inside += 1;
    hint.hidden = false;
  });
  addEventListener("dragleave", () => {
    inside = Math.max(0, inside - 1);
    hint.hidden = inside === 0;
  });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    inside = 0;
    hint.hidden = true;
    uploadAll([...event.dataTransfer.files]);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.upload) return;
    event.preventDefault();
    uploadAll([...form.elements.file.files]).then(() => form.reset());
  });
  watchList();
}

async function uploadAll(files) {
  for (const file of files) await upload(file);
}

async function upload(file) {
  const news = toast(`${file.name}: uploading`);
  try {
    const form = new FormData();
    form.append("file", file);
    const response = await fetch("/api/documents", { method: "POST", body: form });
    const data = await response.json();
    if (!response.ok) throw new Error(data.error.message);
    await redrawList();
    await watch(data.document_id, file.name, news);
  } catch (reason) {
    news.classList.add("bad");
    news.textContent = `${file.name}: ${sentenceOf(reason)}`;
  }
  fade(news);
}

/** Say how far a document has come until it is ready or has failed. */
async function watch(id, name, news) {
  for (;;) {
    const response = await fetch(`/api/documents/${id}`);
    if (!response.ok) return;
    const data = await response.json();
    if (data.state === "embedding") news.textContent = `${name}: searchable by words, embedding ${data.embedded} of ${data.chunks}`;
    else news.textContent = `${name}: ${data.state === "failed" ? data.reason : data.state}`;
    if (data.state === "failed") news.classList.add("bad");
    if (data.state === "ready" || data.state === "failed") return;
    await new Promise((resolve) => setTimeout(resolve, SECONDS_BETWEEN_LOOKS * 1000));
  }
}

/** Redraw the list of documents every second while one of them is being worked on. */
function watchList() {
  setInterval(() => {
    if (document.getElementById("documents")?.dataset.busy === "yes") redrawList();
  }, SECONDS_BETWEEN_LOOKS * 1000);
}

async function redrawList() {
  const list = document.getElementById("documents");
  if (!list) return;
  const response = await fetch(`${list.dataset.page}?drawer=1`);
  if (!response.ok) return;
  const drawn = elementOf(await response.text());
  list.querySelector("table, p")?.replaceWith(drawn.querySelector("table, p"));
  list.dataset.busy = drawn.dataset.busy;
}
