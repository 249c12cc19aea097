// The upload panel: a line that sums up, the files that are being worked on, and what there is to say about others.
import { t, tn } from "../lib/language.js";

const OPEN = ["waiting", "sending", "queued", "reading", "recognising", "embedding"];
const RUNNING = ["sending", "reading", "recognising", "embedding"];
const SECONDS_TO_READ = 6;
let drawn = new Map();
let panel = null;
let pending = null;
let farewell = 0;

/** Draw the panel with the next animation frame, in the state of that moment. */
export function drawPanel(items, actions) {
  if (pending === null) requestAnimationFrame(() => drawNow(...takePending()));
  pending = [items, actions];
}

function takePending() {
  const latest = pending;
  pending = null;
  return latest;
}

function drawNow(items, actions) {
  clearTimeout(farewell);
  if (!items.length) {
    panel?.remove();
    panel = null;
    drawn = new Map();
    return;
  }
  panel ??= makePanel(actions);
  const list = panel.querySelector("ul");
  const isDone = !items.some(isOpen);
  // Once all is done, one line is enough; what it sums up is a click away.
  if (isDone !== panel.hasAttribute("data-done")) panel.querySelector("details").open = !isDone;
  panel.toggleAttribute("data-done", isDone);
  const listed = items.filter(isListed);
  for (const item of listed) {
    if (!drawn.has(item)) {
      drawn.set(item, makeRow(item, actions));
      list.append(drawn.get(item).row);
    }
    drawRow(item, drawn.get(item));
  }
  for (const [item, { row }] of drawn) {
    if (listed.includes(item)) continue;
    row.remove();
    drawn.delete(item);
  }
  drawHead(items);
  if (!listed.length && isDone) leaveSoon(actions);
}

/** Tell whether something is still to be done with a file. */
export const isOpen = (item) => OPEN.includes(item.state);

/** Tell whether a file has a row of its own: it is being worked on, or there is something to say about it. */
function isListed(item) {
  return RUNNING.includes(item.state) || (!isOpen(item) && Boolean(item.reason));
}

/** Remove a panel with nothing to say but that all is done, once it has been read. */
function leaveSoon(actions) {
  farewell = setTimeout(() => {
    if (panel?.matches(":hover, :focus-within")) leaveSoon(actions);
    else actions.clear();
  }, SECONDS_TO_READ * 1000);
}

function drawHead(items) {
  const open = items.filter(isOpen).length;
  setText(panel.querySelector(".headline"), headlineOf(items, open));
  panel.querySelector("[data-stop]").hidden = open === 0;
  panel.querySelector("[data-clear]").hidden = open > 0;
}

function headlineOf(items, open) {
  const count = (state) => items.filter((item) => item.state === state).length;
  const [ready, known, failed, cancelled] = ["ready", "duplicate", "failed", "cancelled"].map(count);
  const parts = [ready || open || !(known + failed + cancelled) ? added(ready, open, items.length) : ""];
  if (known) parts.push(tn("{n} already in your library", "{n} already in your library", known));
  if (failed) parts.push(tn("{n} failed", "{n} failed", failed));
  if (cancelled) parts.push(tn("{n} cancelled", "{n} cancelled", cancelled));
  return parts.filter(Boolean).join(", ");
}

function added(ready, open, n) {
  if (!open) return tn("{n} file added", "{n} files added", ready);
  if (!ready) return tn("Adding {n} file", "Adding {n} files", open);
  return tn("{ready} of {n} file added", "{ready} of {n} files added", n, { ready });
}

function makePanel(actions) {
  const node = element("section", "uploads");
  node.setAttribute("aria-label", t("Uploads"));
  const head = element("header");
  const details = element("details");
  details.open = true;
  const summary = element("summary");
  const headline = element("b", "headline");
  headline.setAttribute("role", "status");
  summary.append(headline);
  details.append(summary, element("ul"));
  const stop = button(t("Cancel all"), () => actions.cancelAll());
  stop.dataset.stop = "";
  const close = button(t("Close"), () => actions.clear());
  close.dataset.clear = "";
  head.append(details, stop, close);
  node.append(head);
  (document.querySelector(".column") ?? document.body).append(node);
  return node;
}

function makeRow(item, actions) {
  const row = element("li");
  const name = element("bdi", "file-name");
  name.textContent = item.name;
  name.title = item.name;
  const state = element("span", "state-word");
  const bar = document.createElement("progress");
  bar.setAttribute("aria-label", item.name);
  const act = button("", () => actions[act.dataset.act](item));
  const reason = element("p", "reason");
  row.append(name, state, act, bar, reason);
  return { row, state, bar, act, reason };
}

function drawRow(item, { row, state, bar, act, reason }) {
  row.className = item.state;
  setText(state, wordsFor(item));
  setText(reason, item.state === "embedding" ? "" : item.reason ?? "");
  reason.hidden = !reason.textContent;
  drawBar(bar, item);
  const action = isOpen(item) ? "cancel" : item.state === "failed" && !item.refused && !item.id ? "retry" : "";
  act.hidden = !action;
  act.dataset.act = action;
  setText(act, action === "cancel" ? t("Cancel") : t("Retry"));
  act.setAttribute("aria-label", action === "cancel" ? t("Cancel {name}", { name: item.name }) : t("Retry {name}", { name: item.name }));
}

/** Draw how far a file is; while it is read, that is not known. */
function drawBar(bar, item) {
  bar.hidden = !isOpen(item);
  if (item.state === "recognising") bar.value = item.recognised_pages / (item.scanned_pages || 1);
  else if (item.state === "reading") bar.removeAttribute("value");
  else bar.value = item.state === "sending" ? item.sent : (item.embedded ?? 0) / (item.chunks || 1);
}

function wordsFor(item) {
  if (item.state === "sending") return item.sent < 1 ? `${Math.floor(item.sent * 100)} %` : t("finishing");
  if (item.state === "embedding") return t("indexing {n} of {count}", { n: item.embedded, count: item.chunks });
  if (item.state === "recognising") return t("recognising text, page {n} of {count}", { n: item.recognised_pages, count: item.scanned_pages });
  return {
    waiting: t("waiting"),
    queued: t("queued"),
    reading: t("processing"),
    ready: t("ready"),
    duplicate: t("already added"),
    failed: t("failed"),
    cancelled: t("cancelled"),
  }[item.state];
}

function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

function element(tag, name = "") {
  const node = document.createElement(tag);
  node.className = name;
  return node;
}

function button(words, act) {
  const node = element("button", "quiet");
  node.type = "button";
  node.textContent = words;
  node.addEventListener("click", act);
  return node;
}
