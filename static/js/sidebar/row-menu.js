// The menu of a conversation in the sidebar: one menu for all rows.
import { address } from "../lib/address.js";
import { send } from "../lib/api.js";
import { t } from "../lib/language.js";
import { positionAt } from "../lib/menu-position.js";
import { showError, undoable } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { refreshConversations } from "./conversation-list.js";

const menu = () => document.getElementById("row-menu");
let row = null;

/** Open the menu at a row's button, and run the chosen action. */
export function enableRowMenu() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".row-actions");
    if (button) open(button);
    const item = event.target.closest("#row-menu [data-action]");
    if (item) choose(item);
  });
  menu().addEventListener("keydown", move);
  menu().addEventListener("toggle", (event) => {
    row?.querySelector(".row-actions")?.setAttribute("aria-expanded", String(event.newState === "open"));
  });
}

function open(button) {
  row = button.closest(".conversation");
  const { id, url } = resourceOf(row);
  menu().querySelector("[data-action=pin]").textContent = "pinned" in row.dataset ? t("Unpin") : t("Pin");
  for (const kind of ["markdown", "json"]) {
    menu().querySelector(`[data-action=${kind}]`).href = `${url}/export?format=${kind}`;
  }
  const moving = menu().querySelector("[data-action=move]");
  // Shown, the field opens the menu that it is in.
  if (moving) moving.href = address(`/conversations/${id}#project`);
  // Within the row's landmark, for those who navigate by landmarks.
  button.closest("nav")?.append(menu());
  menu().showPopover();
  positionAt(button, menu());
  menu().dataset.conversation = id;
  menu().querySelector("[role=menuitem]").focus();
}

function resourceOf(element) {
  const id = element.dataset.conversation;
  return { id, url: address(`/api/conversations/${id}`) };
}

function move(event) {
  const items = [...menu().querySelectorAll("[role=menuitem]")];
  const index = items.indexOf(document.activeElement);
  const count = items.length;
  const next = { ArrowDown: (index + 1) % count, ArrowUp: (index + count - 1) % count, Home: 0, End: count - 1 }[event.key];
  if (next !== undefined) {
    event.preventDefault();
    items[next].focus();
  } else if (event.key === "Tab" || event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    close();
  }
}

function close() {
  menu().hidePopover();
  row?.querySelector(".row-actions")?.focus();
}

function choose(item) {
  const chosen = row;
  close();
  const actions = { rename, pin, archive, delete: remove };
  // Exports are links and need no script.
  actions[item.dataset.action]?.(chosen)?.catch(showError);
}

/** Edit the title in place: Enter saves, Escape cancels. */
async function rename(chosen) {
  const link = chosen.querySelector("a");
  const before = link.querySelector(".title").textContent;
  const box = document.createElement("input");
  Object.assign(box, { className: "renaming", value: before, maxLength: 200, dir: "auto" });
  box.setAttribute("aria-label", t("Conversation title"));
  link.hidden = true;
  link.before(box);
  box.select();
  box.focus();
  const title = await editedText(box);
  box.remove();
  link.hidden = false;
  link.focus();
  if (title === null || title === before) return;
  await send("PATCH", resourceOf(chosen).url, { title });
  await refreshPage();
  await refreshConversations();
}

/** Return the text entered into a box, null if cancelled. */
function editedText(box) {
  return new Promise((resolve) => {
    box.addEventListener("keydown", (event) => {
      if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      resolve(event.key === "Enter" ? box.value.trim() || null : null);
    });
    document.getElementById("conversations").addEventListener("list-replaced", () => resolve(null), { once: true });
    box.addEventListener("blur", () => resolve(box.value.trim() || null));
  });
}

async function pin(chosen) {
  await send("PATCH", resourceOf(chosen).url, { pinned: !("pinned" in chosen.dataset) });
  await refreshPage();
  await refreshConversations();
}

async function archive(chosen) {
  const { url } = resourceOf(chosen);
  await send("PATCH", url, { archived: true });
  takeAway(chosen, (title) => t("“{title}” archived.", { title }), () => send("PATCH", url, { archived: false }));
  await refreshPage();
}

/** Delete at once, with Undo. */
async function remove(chosen) {
  const { id, url } = resourceOf(chosen);
  await send("DELETE", url);
  if (location.pathname === address(`/conversations/${id}`)) {
    // The start page offers Undo.
    location.assign(address(`/?deleted=${id}`));
    return;
  }
  takeAway(chosen, (title) => t("“{title}” deleted.", { title }), () => send("POST", `${url}/restore`));
}

/** Take a row out of the list, and offer to undo what was done. */
function takeAway(chosen, sentence, undo) {
  const neighbour = chosen.nextElementSibling ?? chosen.previousElementSibling;
  chosen.remove();
  neighbour?.querySelector("a")?.focus();
  undoable(sentence(chosen.querySelector(".title").textContent), async () => {
    await undo();
    await refreshConversations();
  });
}
