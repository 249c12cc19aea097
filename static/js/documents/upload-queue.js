// The upload queue: files are sent a few at a time, then polled until they are ready.
import { address } from "../lib/address.js";
import { send } from "../lib/api.js";
import { t } from "../lib/language.js";
import { errorMessage } from "../lib/toast.js";
import { redrawWelcome } from "../conversation/welcome.js";
import { redrawList } from "./library.js";
import { drawPanel, isOpen } from "./upload-panel.js";

const MAX_CONCURRENT = 3;
const POLL_INTERVAL_SECONDS = 1;
const PAGE_SIZE = 200;
const PENDING = ["queued", "reading", "recognising", "embedding"];

/** Each has file, fields, state, and as they come: sent (0 to 1), id, reason, refused, embedded, chunks,
    scanned_pages, recognised_pages. */
let items = [];
let polling = false;

/** Add files to the queue, with the other fields of their form. */
export function addToQueue(files, fields) {
  items.push(...files.map((file) => ({ file, name: file.name, fields, state: "waiting", sent: 0 })));
  draw();
  uploadNext();
}

const actions = {
  /** Cancel a file, whatever its state. */
  async cancel(item) {
    if (item.state === "waiting") item.state = "cancelled";
    else if (item.request) item.request.abort();
    else await send("POST", address(`/api/documents/${item.id}/cancel`), {}).catch(() => null);
    draw();
  },
  async cancelAll() {
    await Promise.all(items.filter(isOpen).map(actions.cancel));
  },
  /** Send a file again that did not arrive. */
  retry(item) {
    item.reason = null;
    item.state = "waiting";
    uploadNext();
    draw();
  },
  /** Remove the files that have ended. */
  clear() {
    items = items.filter(isOpen);
    draw();
  },
};

function draw() {
  drawPanel(items, actions);
}

function uploadNext() {
  const sending = items.filter((item) => item.state === "sending").length;
  for (const item of items.filter((one) => one.state === "waiting").slice(0, Math.max(0, MAX_CONCURRENT - sending))) {
    upload(item).then(uploadNext);
  }
  // Leaving now loses what has not been sent yet.
  onbeforeunload = items.some((item) => ["waiting", "sending"].includes(item.state)) ? (event) => event.preventDefault() : null;
}

/** Upload one file; only this kind of request reports its progress. */
function upload(item) {
  const form = new FormData();
  for (const [name, value] of Object.entries(item.fields)) form.append(name, value);
  form.append("file", item.file, item.name);
  item.state = "sending";
  item.sent = 0;
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    item.request = request;
    request.upload.addEventListener("progress", (event) => {
      item.sent = event.total ? event.loaded / event.total : 0;
      draw();
    });
    request.addEventListener("load", () => accepted(item, request));
    request.addEventListener("error", () => settle(item, "failed", t("Upload failed: the file is gone, or the server cannot be reached.")));
    request.addEventListener("abort", () => settle(item, "cancelled"));
    request.addEventListener("loadend", () => {
      item.request = null;
      draw();
      resolve();
    });
    request.open("POST", isArchive(item) ? address("/api/documents/archive") : address("/api/documents"));
    request.send(form);
    draw();
  });
}

/** Tell whether a file is to be unpacked. */
const isArchive = ({ file, fields }) => /\.zip$/i.test(file.name) && !fields.replaces;

function accepted(item, request) {
  let data = null;
  try {
    data = JSON.parse(request.responseText);
  } catch {
    // Not JSON, so not an answer of ours.
  }
  if (request.status !== 202 || !data) {
    // A problem with the file itself would come back with a retry.
    item.refused = request.status >= 400 && request.status < 500;
    settle(item, "failed", data?.error?.message ?? t("The server answered with status {status}.", { status: request.status }));
    return;
  }
  if (data.documents) replaceByFiles(item, data);
  else added(item, data);
  redrawList();
  poll();
}

function added(item, data) {
  // A file that failed and is sent again is known, but was never added.
  item.isDuplicate = !data.new && item.id !== data.document_id;
  item.id = data.document_id;
  updateState(item, data);
}

/** Show the files in an archive in its place. */
function replaceByFiles(archive, { documents, refused }) {
  const { file, fields } = archive;
  const files = documents.map((data) => ({ file, fields, name: data.name, data }));
  for (const item of files) added(item, item.data);
  const failed = refused.map(({ name, reason }) => ({ file, fields, name, state: "failed", reason, refused: true }));
  items.splice(items.indexOf(archive), 1, ...files, ...failed);
}

function settle(item, state, reason = null) {
  item.state = state;
  item.reason = reason;
}

function updateState(item, data) {
  item.state = data.state;
  item.reason = data.reason;
  item.embedded = data.embedded;
  item.chunks = data.chunks;
  item.scanned_pages = data.scanned_pages;
  item.recognised_pages = data.recognised_pages;
  if (item.isDuplicate && item.state === "ready") {
    settle(item, "duplicate", data.name === item.name ? null : t("Already in your library as {name}.", { name: data.name }));
  }
}

/** Poll the pending files, the oldest first, until none is left. */
async function poll() {
  if (polling) return;
  polling = true;
  for (;;) {
    const open = items.filter((item) => item.id && PENDING.includes(item.state)).sort((a, b) => a.id - b.id);
    if (!open.length) break;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_SECONDS * 1000));
    const before = open[0].id + PAGE_SIZE;
    const response = await fetch(address(`/api/documents?limit=${PAGE_SIZE}&cursor=${before}`)).catch(() => null);
    const data = response?.ok ? await response.json().catch(() => null) : null;
    if (!data) continue;
    const known = new Map(data.documents.map((one) => [one.document_id, one]));
    for (const item of open) {
      if (known.has(item.id)) updateState(item, known.get(item.id));
      // A new version has replaced the old one, or somebody deleted it.
      else if (item.id < before) settle(item, item.fields.replaces ? "ready" : "cancelled");
    }
    draw();
  }
  polling = false;
  redrawList();
  redrawWelcome().catch(() => null);
}
