// The upload panel: every pending file with its progress and its actions.

const BUSY = ["waiting", "sending", "queued", "reading", "embedding"];
const WORDS = {
  waiting: "waiting",
  queued: "queued",
  reading: "processing",
  ready: "ready",
  duplicate: "already added",
  cancelled: "cancelled",
};
let drawn = new Map();
let panel = null;
let pending = null;

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
  if (!items.length) {
    panel?.remove();
    panel = null;
    drawn = new Map();
    return;
  }
  panel ??= makePanel(actions);
  const list = panel.querySelector("ul");
  for (const item of items) {
    if (!drawn.has(item)) {
      drawn.set(item, makeRow(item, actions));
      list.append(drawn.get(item).row);
    }
    drawRow(item, drawn.get(item));
  }
  for (const [item, { row }] of drawn) {
    if (items.includes(item)) continue;
    row.remove();
    drawn.delete(item);
  }
  drawHead(items);
}

function drawHead(items) {
  const count = (...states) => items.filter((item) => states.includes(item.state)).length;
  const open = count(...BUSY);
  const failed = count("failed");
  const done = count("ready", "duplicate");
  const words = open ? `${done} of ${items.length} ready` : `${done} ${done === 1 ? "document" : "documents"} ready`;
  setText(panel.querySelector(".headline"), failed ? `${words}, ${failed} failed` : words);
  panel.querySelector("[data-clear]").hidden = open > 0;
  panel.classList.toggle("bad", failed > 0);
}

function makePanel(actions) {
  const node = element("section", "uploads");
  node.setAttribute("aria-label", "Uploads");
  const head = element("header");
  const headline = element("b", "headline");
  headline.setAttribute("role", "status");
  const fold = button("", () => setFolded(!node.classList.contains("folded")));
  function setFolded(folded) {
    node.classList.toggle("folded", folded);
    fold.textContent = folded ? "Show files" : "Hide files";
    fold.setAttribute("aria-expanded", String(!folded));
  }
  // On a phone there is room for a line, not for a list.
  setFolded(matchMedia("(max-width: 60rem)").matches);
  const close = button("Close", () => actions.clear());
  close.dataset.clear = "";
  head.append(headline, fold, close);
  node.append(head, element("ul"));
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
  if (item.state === "failed" && row.className !== "failed") moveToFailures(row);
  row.className = item.state;
  setText(state, wordsFor(item));
  setText(reason, item.state === "embedding" ? "" : item.reason ?? "");
  reason.hidden = !reason.textContent;
  bar.hidden = !["sending", "embedding"].includes(item.state);
  bar.max = 1;
  bar.value = item.state === "sending" ? item.sent : (item.embedded ?? 0) / (item.chunks || 1);
  const action = BUSY.includes(item.state) ? "cancel" : canBeRetried(item) ? "retry" : "";
  act.hidden = !action;
  act.dataset.act = action;
  setText(act, action === "cancel" ? "Cancel" : "Retry");
  act.setAttribute("aria-label", `${act.textContent} ${item.name}`);
}

/** Move a failed file to the front, in sight; a reader who is in its row stays there. */
function moveToFailures(row) {
  const focused = row.contains(document.activeElement) ? document.activeElement : null;
  const list = row.parentElement;
  list.insertBefore(row, list.querySelector("li:not(.failed)"));
  focused?.focus();
}

function canBeRetried(item) {
  return item.state === "cancelled" || (item.state === "failed" && !item.refused);
}

function wordsFor(item) {
  if (item.state === "sending") return item.sent < 1 ? `${Math.floor(item.sent * 100)} %` : "finishing";
  if (item.state === "embedding") return `indexing ${item.embedded} of ${item.chunks}`;
  if (item.state === "failed") return "failed";
  return WORDS[item.state] ?? item.state;
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
