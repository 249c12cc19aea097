// What can be done with a conversation of the list: one menu for all rows.
import { send } from "../lib/api.js";
import { placeAt } from "../lib/menu-position.js";
import { complainAbout, undoable } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { refreshConversations } from "./conversation-list.js";

const menu = () => document.getElementById("row-menu");
let row = null;

/** Open the menu at the button of a row, and do what is chosen. */
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
  const { id, url } = of(row);
  menu().querySelector("[data-action=pin]").textContent = "pinned" in row.dataset ? "Unpin" : "Pin";
  for (const kind of ["markdown", "json"]) {
    menu().querySelector(`[data-action=${kind}]`).href = `${url}/export?format=${kind}`;
  }
  // Whoever goes from landmark to landmark finds the menu in the one of its row.
  button.closest("nav")?.append(menu());
  menu().showPopover();
  placeAt(button, menu());
  menu().dataset.conversation = id;
  menu().querySelector("[role=menuitem]").focus();
}

function of(element) {
  const id = element.dataset.conversation;
  return { id, url: `/api/conversations/${id}` };
}

function move(event) {
  const items = [...menu().querySelectorAll("[role=menuitem]")];
  const place = items.indexOf(document.activeElement);
  const count = items.length;
  const next = { ArrowDown: (place + 1) % count, ArrowUp: (place + count - 1) % count, Home: 0, End: count - 1 }[event.key];
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
  const acts = { rename, pin, delete: remove };
  // An export is a link, and does by itself what is to be done.
  acts[item.dataset.action]?.(chosen)?.catch(complainAbout);
}

/** Write the title in its place: Enter keeps it, Escape gives it up. */
async function rename(chosen) {
  const link = chosen.querySelector("a");
  const before = link.querySelector(".title").textContent;
  const box = document.createElement("input");
  Object.assign(box, { className: "renaming", value: before, maxLength: 200, dir: "auto" });
  box.setAttribute("aria-label", "Title of the conversation");
  link.hidden = true;
  link.before(box);
  box.select();
  box.focus();
  const title = await written(box);
  box.remove();
  link.hidden = false;
  link.focus();
  if (title === null || title === before) return;
  await send("PATCH", of(chosen).url, { title });
  await refreshPage();
  await refreshConversations();
}

/** Return what is written into a box, null if it is given up. */
function written(box) {
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
  await send("PATCH", of(chosen).url, { pinned: !("pinned" in chosen.dataset) });
  await refreshPage();
  await refreshConversations();
}

/** Delete at once; what was deleted can be brought back. */
async function remove(chosen) {
  const { id, url } = of(chosen);
  const title = chosen.querySelector(".title").textContent;
  await send("DELETE", url);
  if (location.pathname === `/conversations/${id}`) {
    // The start page offers to bring it back.
    location.assign(`/?deleted=${id}`);
    return;
  }
  const near = chosen.nextElementSibling ?? chosen.previousElementSibling;
  chosen.remove();
  near?.querySelector("a")?.focus();
  undoable(`“${title}” was deleted.`, async () => {
    await send("POST", `${url}/restore`);
    await refreshConversations();
  });
}
