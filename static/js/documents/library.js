// The list of documents: its actions in place, and live updates while documents are being processed.
import { refusalOf } from "../lib/api.js";
import { documentOf } from "../lib/html.js";
import { poll } from "../lib/polling.js";
import { showError } from "../lib/toast.js";

const interval = { seconds: 1 };
// What comes from elsewhere, such as a watched folder, can wait a little.
const idleInterval = { seconds: 5 };
const DEBOUNCE_MS = 150;
let debounce = 0;

/** Let the forms of the list work without leaving the page, and keep the list up to date. */
export function enableDocuments() {
  document.addEventListener("submit", (event) => {
    if (!("inPlace" in event.target.dataset) || ["ask", "grid"].includes(event.submitter?.value)) return;
    event.preventDefault();
    submit(event.target, event.submitter).catch(showError);
  });
  document.addEventListener("submit", (event) => {
    if (!("find" in event.target.dataset)) return;
    event.preventDefault();
    search(event.target);
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-find]");
    if (!form) return;
    clearTimeout(debounce);
    debounce = setTimeout(() => search(form), DEBOUNCE_MS);
  });
  // A menu at the end of the list opens below what is in sight.
  document.addEventListener("toggle", (event) => {
    if (event.target.matches("details.more[open]")) event.target.querySelector(".panel")?.scrollIntoView({ block: "nearest" });
  }, true);
  poll(async () => {
    if (list()?.dataset.busy === "yes") await redrawList();
  }, interval);
  poll(redrawList, idleInterval);
}

/** Redraw the list from the server, if this page shows it. */
export async function redrawList() {
  if (!list()) return;
  await loadList(list().dataset.page);
}

/** Show search results, and keep the search in the address of the full page. */
async function search(form) {
  clearTimeout(debounce);
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value);
  if (form.closest("#drawer")) url.searchParams.set("drawer", "1");
  else history.replaceState(null, "", url);
  list().dataset.page = url.pathname + url.search;
  await loadList(list().dataset.page);
}

/** Load the list from a URL, unless another search has started meanwhile. */
async function loadList(url) {
  // As long as nothing is new, the server answers 304 with nothing in it.
  const response = await fetch(url, { headers: { "If-None-Match": list().dataset.etag } }).catch(() => null);
  const html = response?.ok ? await response.text().catch(() => null) : null;
  if (html !== null && list()?.dataset.page === url) updateList(documentOf(html).getElementById("documents"));
}

function list() {
  return document.getElementById("documents");
}

/** Submit a form of the list, and show the list that comes back. */
async function submit(form, button) {
  const response = await fetch(form.action, {
    method: "POST",
    body: new URLSearchParams(new FormData(form, button)),
    headers: { Accept: "application/json" },
  });
  if (!response.ok) throw await refusalOf(response);
  if (form.matches(".upload")) form.reset();
  const row = form.closest("tr") ?? form;
  for (const open of row.querySelectorAll("details[open]")) open.open = false;
  document.activeElement?.blur();
  const drawn = documentOf(await response.text()).getElementById("documents");
  // Undo is offered until the next action, whatever is redrawn meanwhile.
  list().querySelector("#deleted").replaceWith(document.adoptNode(drawn.querySelector("#deleted")));
  updateList(drawn);
  ((row.isConnected && row.querySelector("a")) || list().querySelector("h1")).focus();
}

function updateList(drawn) {
  const now = list();
  now.dataset.busy = drawn.dataset.busy;
  updateSelectionForm(now, drawn);
  updateSources(now, drawn);
  const parts = ["tags", "origins", "figures", "columns", "paging", "guide"].map((id) => updatePart(now.querySelector(`#${id}`), drawn.querySelector(`#${id}`)));
  const [body, drawnBody] = [now, drawn].map((one) => one.querySelector(".library tbody"));
  if (!body || !drawnBody) now.querySelector("#library").replaceWith(drawn.querySelector("#library"));
  else parts.push(updateRows(body, drawnBody));
  // What somebody is using was left as it was, and is asked for again until it is free.
  const complete = parts.every(Boolean);
  now.dataset.etag = complete ? drawn.dataset.etag : "";
  if (!complete) now.dataset.busy = "yes";
  document.dispatchEvent(new CustomEvent("library-drawn"));
}

/** Add the list of watched folders once there are any, and open it when it has something new to complain about. */
function updateSources(now, drawn) {
  const [current, next] = [now, drawn].map((one) => one.querySelector(".origins"));
  if (!current && next) now.querySelector(".documents-top").after(document.adoptNode(next));
  if (!current || !next) return;
  const [known, said] = [current, next].map((one) => [...one.querySelectorAll(".reason")].map((reason) => reason.textContent));
  if (said.some((problem) => !known.includes(problem))) current.open = true;
}

/** Add or remove the form for selected documents, depending on whether there is anything to select. */
function updateSelectionForm(now, drawn) {
  const [current, next] = [now.querySelector("#selected"), drawn.querySelector("#selected")];
  if (current && next) current.action = next.action;
  else if (current) current.remove();
  else if (next) now.querySelector("#library").before(document.adoptNode(next));
}

/** Update the rows, and return whether all of them could be. */
function updateRows(body, drawn) {
  const rowOf = (holder, row) => holder.querySelector(`[data-document="${row.dataset.document}"]`);
  for (const row of [...body.rows]) if (!rowOf(drawn, row)) row.remove();
  let complete = true;
  [...drawn.rows].forEach((row, index) => {
    const current = rowOf(body, row);
    // A renamed one may stand elsewhere now.
    if (body.rows[index] !== (current ?? row)) body.insertBefore(current ?? row, body.rows[index] ?? null);
    if (!current) return;
    if (current.className !== row.className) current.className = row.className;
    [...row.cells].forEach((cell, column) => {
      complete = updatePart(current.cells[column], cell) && complete;
    });
  });
  return complete;
}

/** Replace a part with its new version, unless somebody is using it; return whether it is up to date. */
function updatePart(current, drawn) {
  if (!current || !drawn) return true;
  if (current.isEqualNode(drawn)) return true;
  if (current.querySelector("details[open], input:checked") || current.contains(document.activeElement)) return false;
  current.replaceWith(drawn);
  return true;
}
