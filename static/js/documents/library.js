// The list of documents: its actions in place, and the list as it is now while documents are worked on.
import { refusalOf } from "../lib/api.js";
import { documentOf, elementOf } from "../lib/html.js";
import { keepLooking } from "../lib/polling.js";
import { complainAbout } from "../lib/toast.js";

const pace = { seconds: 1 };
const MILLISECONDS_OF_TYPING = 150;
let typing = 0;

/** Let the forms of the list work without leaving the page, and keep the list up to date. */
export function enableDocuments() {
  document.addEventListener("submit", (event) => {
    if (!("inPlace" in event.target.dataset) || event.submitter?.value === "ask") return;
    event.preventDefault();
    act(event.target, event.submitter).catch(complainAbout);
  });
  document.addEventListener("submit", (event) => {
    if (!("find" in event.target.dataset)) return;
    event.preventDefault();
    find(event.target);
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-find]");
    if (!form) return;
    clearTimeout(typing);
    typing = setTimeout(() => find(form), MILLISECONDS_OF_TYPING);
  });
  // A menu at the end of the list opens below what is in sight.
  document.addEventListener("toggle", (event) => {
    if (event.target.matches("details.more[open]")) event.target.querySelector(".panel")?.scrollIntoView({ block: "nearest" });
  }, true);
  keepLooking(async () => {
    if (list()?.dataset.busy === "yes") await redrawList();
  }, pace);
}

/** Draw the first page's welcome, which names documents, as the server has it now, if this page shows it. */
export async function redrawWelcome() {
  const response = document.querySelector(".welcome") && (await fetch(location.href).catch(() => null));
  const drawn = response?.ok && documentOf(await response.text()).querySelector(".welcome");
  const known = document.querySelector(".welcome");
  if (!drawn || !known) return;
  const isHeld = known.contains(document.activeElement);
  known.replaceWith(document.adoptNode(drawn));
  if (isHeld) drawn.querySelector("input[type=file]")?.focus();
}

/** Draw the list as the server has it now, if this page shows it. */
export async function redrawList() {
  if (!list()) return;
  await takeFrom(list().dataset.page);
}

/** Show what is sought, and keep it in the address of a page of its own. */
async function find(form) {
  clearTimeout(typing);
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value);
  if (!form.closest("#drawer")) history.replaceState(null, "", url);
  url.searchParams.set("drawer", "1");
  list().dataset.page = url.pathname + url.search;
  await takeFrom(list().dataset.page);
}

/** Take over the list from an address, unless another one is wanted by then: who types on wants the last answer only. */
async function takeFrom(wanted) {
  const response = await fetch(wanted).catch(() => null);
  const html = response?.ok ? await response.text().catch(() => null) : null;
  if (html !== null && list()?.dataset.page === wanted) takeList(elementOf(html));
}

function list() {
  return document.getElementById("documents");
}

/** Send a form of the list, and take over the list that comes back. */
async function act(form, button) {
  const response = await fetch(form.action, {
    method: "POST",
    body: new URLSearchParams(new FormData(form, button)),
    headers: { Accept: "application/json" },
  });
  if (!response.ok) throw await refusalOf(response);
  const row = form.closest("tr") ?? form;
  for (const open of row.querySelectorAll("details[open]")) open.open = false;
  document.activeElement?.blur();
  takeList(documentOf(await response.text()).getElementById("documents"));
  ((row.isConnected && row.querySelector("a")) || list().querySelector("h1")).focus();
}

function takeList(drawn) {
  const now = list();
  now.dataset.busy = drawn.dataset.busy;
  takeChosen(now, drawn);
  for (const id of ["tags", "paging"]) takeCell(now.querySelector(`#${id}`), drawn.querySelector(`#${id}`));
  const [body, drawnBody] = [now, drawn].map((one) => one.querySelector(".library tbody"));
  if (!body || !drawnBody) now.querySelector("#library").replaceWith(drawn.querySelector("#library"));
  // What is open was kept as it was; it is looked at again until it is closed.
  else if (!takeRows(body, drawnBody)) now.dataset.busy = "yes";
  document.dispatchEvent(new CustomEvent("library-drawn"));
}

/** Take over the form for what is ticked where there was none, or where there is nothing to tick any more. */
function takeChosen(now, drawn) {
  const [known, made] = [now.querySelector("#chosen"), drawn.querySelector("#chosen")];
  if (known && made) known.action = made.action;
  else if (known) known.remove();
  else if (made) now.querySelector("#library").before(document.adoptNode(made));
}

/** Bring the rows up to date, and return whether nothing had to be left as it was. */
function takeRows(body, drawn) {
  const rowOf = (place, row) => place.querySelector(`[data-document="${row.dataset.document}"]`);
  for (const row of [...body.rows]) if (!rowOf(drawn, row)) row.remove();
  let complete = true;
  [...drawn.rows].forEach((row, place) => {
    const known = rowOf(body, row);
    if (!known) {
      body.insertBefore(row, body.rows[place] ?? null);
      return;
    }
    known.className = row.className;
    [...row.cells].forEach((cell, column) => {
      complete = takeCell(known.cells[column], cell) && complete;
    });
  });
  return complete;
}

/** Replace a part by how it is drawn now, unless somebody is at work in it; return whether it is as drawn. */
function takeCell(known, drawn) {
  if (known.isEqualNode(drawn) || known.querySelector("input:checked")) return true;
  if (known.querySelector("details[open]") || known.contains(document.activeElement)) return false;
  known.replaceWith(drawn);
  return true;
}
