// The files that are on their way into the library: sent a few at a time, then watched until they are ready.
import { Refusal, send } from "../lib/api.js";
import { sentenceOf } from "../lib/toast.js";
import { redrawList, redrawWelcome } from "./library.js";
import { drawPanel } from "./upload-panel.js";

const MOST_AT_ONCE = 3;
const SECONDS_BETWEEN_LOOKS = 1;
const MOST_LOOKED_AT = 200;
const WORKED_ON = ["queued", "reading", "embedding"];

/** Each has file, fields, state, and as they come: sent (0 to 1), id, reason, refused, embedded, chunks. */
let items = [];
let looking = false;

/** Put files behind those that wait, with what else is said about them. */
export function addToQueue(files, fields) {
  items.push(...files.map((file) => ({ file, name: file.name, fields, state: "waiting", sent: 0 })));
  draw();
  next();
}

const actions = {
  /** Give a file up, wherever it is by now. */
  async cancel(item) {
    if (item.state === "waiting") item.state = "cancelled";
    else if (item.request) item.request.abort();
    else await send("POST", `/api/documents/${item.id}/cancel`, {}).catch(() => null);
    draw();
  },
  /** Send a file once more, or have it read once more. */
  async retry(item) {
    item.reason = null;
    if (!item.id) {
      item.state = "waiting";
      next();
    } else {
      try {
        takeState(item, await (await send("POST", `/api/documents/${item.id}/retry`, {})).json());
        look();
      } catch (reason) {
        settle(item, "failed", sentenceOf(reason));
      }
    }
    draw();
  },
  /** Forget what has come to its end. */
  clear() {
    items = items.filter((item) => ["waiting", "sending", ...WORKED_ON].includes(item.state));
    draw();
  },
};

function draw() {
  drawPanel(items, actions);
}

function next() {
  const sending = items.filter((item) => item.state === "sending").length;
  for (const item of items.filter((one) => one.state === "waiting").slice(0, Math.max(0, MOST_AT_ONCE - sending))) {
    upload(item).then(next);
  }
  // Who leaves now loses what is not sent yet.
  onbeforeunload = items.some((item) => ["waiting", "sending"].includes(item.state)) ? (event) => event.preventDefault() : null;
}

/** Send one file; only this kind of request tells how far it has come. */
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
    request.addEventListener("error", () => settle(item, "failed", "The file could not be sent: it is gone, or the server cannot be reached."));
    request.addEventListener("abort", () => settle(item, "cancelled"));
    request.addEventListener("loadend", () => {
      item.request = null;
      draw();
      resolve();
    });
    request.open("POST", "/api/documents");
    request.send(form);
    draw();
  });
}

function accepted(item, request) {
  let data = null;
  try {
    data = JSON.parse(request.responseText);
  } catch {
    // What is no JSON is no answer of ours.
  }
  if (request.status !== 202 || !data) {
    const told = new Refusal(data?.error ?? { type: "Unknown", message: `The server answered with status ${request.status}.` });
    // What is wrong with the file itself is as wrong the next time.
    item.refused = request.status >= 400 && request.status < 500;
    settle(item, "failed", told.message);
    return;
  }
  item.id = data.document_id;
  takeState(item, data);
  if (!data.new && item.state === "ready") settle(item, "there", data.name === item.name ? null : `As ${data.name}.`);
  redrawList();
  look();
}

function settle(item, state, reason = null) {
  item.state = state;
  item.reason = reason;
}

function takeState(item, data) {
  item.state = data.state;
  item.reason = data.reason;
  item.embedded = data.embedded;
  item.chunks = data.chunks;
}

/** Look again and again how far the files have come, the oldest first, until none is worked on. */
async function look() {
  if (looking) return;
  looking = true;
  for (;;) {
    const open = items.filter((item) => item.id && WORKED_ON.includes(item.state)).sort((a, b) => a.id - b.id);
    if (!open.length) break;
    await new Promise((resolve) => setTimeout(resolve, SECONDS_BETWEEN_LOOKS * 1000));
    const before = open[0].id + MOST_LOOKED_AT;
    const response = await fetch(`/api/documents?limit=${MOST_LOOKED_AT}&before=${before}`).catch(() => null);
    const data = response?.ok ? await response.json().catch(() => null) : null;
    if (!data) continue;
    const known = new Map(data.documents.map((one) => [one.document_id, one]));
    for (const item of open) {
      if (known.has(item.id)) takeState(item, known.get(item.id));
      // A newer version has taken the older one's place, or somebody deleted it.
      else if (item.id < before) settle(item, item.fields.replaces ? "ready" : "cancelled");
    }
    draw();
  }
  looking = false;
  redrawList();
  redrawWelcome().catch(() => null);
}
