// The strip below the column: every file that is on its way, how far it is, and what can be done about it.

const BUSY = ["waiting", "sending", "queued", "reading", "embedding"];
const WORDS = {
  waiting: "waiting",
  queued: "waiting to be read",
  reading: "being read",
  ready: "ready",
  there: "already there",
  cancelled: "cancelled",
};
let drawn = new Map();
let panel = null;
let due = null;

/** Draw the panel with the next picture of the screen, as the files are by then. */
export function drawPanel(items, actions) {
  if (due === null) requestAnimationFrame(() => drawNow(...takeDue()));
  due = [items, actions];
}

function takeDue() {
  const wanted = due;
  due = null;
  return wanted;
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
  const done = count("ready", "there");
  const words = open ? `${done} of ${items.length} ready` : `${done} ${done === 1 ? "document" : "documents"} ready`;
  setText(panel.querySelector(".news"), failed ? `${words}, ${failed} failed` : words);
  panel.querySelector("[data-clear]").hidden = open > 0;
  panel.classList.toggle("bad", failed > 0);
}

function makePanel(actions) {
  const made = element("section", "uploads");
  made.setAttribute("aria-label", "Uploads");
  const head = element("header");
  const news = element("b", "news");
  news.setAttribute("role", "status");
  const fold = button("", () => setFolded(!made.classList.contains("folded")));
  function setFolded(folded) {
    made.classList.toggle("folded", folded);
    fold.textContent = folded ? "Show files" : "Hide files";
    fold.setAttribute("aria-expanded", String(!folded));
  }
  // There is room for a line on a phone, not for a list.
  setFolded(matchMedia("(max-width: 60rem)").matches);
  const close = button("Close", () => actions.clear());
  close.dataset.clear = "";
  head.append(news, fold, close);
  made.append(head, element("ul"));
  (document.querySelector(".column") ?? document.body).append(made);
  return made;
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
  if (item.state === "failed" && row.className !== "failed") putBehindFailures(row);
  row.className = item.state;
  setText(state, wordsFor(item));
  setText(reason, item.state === "embedding" ? "" : item.reason ?? "");
  reason.hidden = !reason.textContent;
  bar.hidden = !["sending", "embedding"].includes(item.state);
  bar.max = 1;
  bar.value = item.state === "sending" ? item.sent : (item.embedded ?? 0) / (item.chunks || 1);
  const doable = BUSY.includes(item.state) ? "cancel" : canBeRetried(item) ? "retry" : "";
  act.hidden = !doable;
  act.dataset.act = doable;
  setText(act, doable === "cancel" ? "Cancel" : "Retry");
  act.setAttribute("aria-label", `${act.textContent} ${item.name}`);
}

/** What failed stands in front of all else, in sight; whoever is in its row stays there. */
function putBehindFailures(row) {
  const focused = row.contains(document.activeElement) ? document.activeElement : null;
  const list = row.parentElement;
  list.insertBefore(row, list.querySelector("li:not(.failed)"));
  focused?.focus();
}

function canBeRetried(item) {
  return item.state === "cancelled" || (item.state === "failed" && !item.refused);
}

function wordsFor(item) {
  if (item.state === "sending") return item.sent < 1 ? `${Math.floor(item.sent * 100)} %` : "arriving";
  if (item.state === "embedding") return `embedding ${item.embedded} of ${item.chunks}`;
  if (item.state === "failed") return "failed";
  return WORDS[item.state] ?? item.state;
}

function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

function element(tag, name = "") {
  const made = document.createElement(tag);
  made.className = name;
  return made;
}

function button(words, act) {
  const made = element("button", "quiet");
  made.type = "button";
  made.textContent = words;
  made.addEventListener("click", act);
  return made;
}
