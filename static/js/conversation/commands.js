// Slash commands, typed where questions are typed: the suggestion list, and their results.
import { address } from "../lib/address.js";
import { send } from "../lib/api.js";
import { t, tn } from "../lib/language.js";
import { errorMessage, showError } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { summarise } from "./bill.js";
import { composer, conversationId, fill, restoreText, showComposerError } from "./composer.js";
import { drawView, savedView } from "./horizon.js";
import { isTemporary } from "./temporary.js";
import { mention, mentionIn, mentionsOf } from "./mentions.js";
import { removeWelcome } from "./welcome.js";

/** Tell whether a text is a command: a slash and a word, alone or followed by more if the word is a known command. */
export function isCommand(text) {
  const [word, ...more] = text.trim().split(/\s+/);
  if (!/^\/-*\p{L}[\p{L}-]*$/u.test(word)) return false;
  return more.length === 0 || options().some((one) => one.dataset.command === word.toLowerCase());
}

/** Run a command and show its result. A typed command goes back into the box if it fails. */
export async function runCommand(command, typed) {
  document.getElementById("window")?.removeAttribute("open");
  composer().elements.question.focus();
  if (command.trim().toLowerCase() === "/compact" && conversationId() !== null) return showBill(command, typed);
  const block = appendResult(command.trim());
  try {
    const { text, fold } = await resultOf(command);
    fillResult(block, text);
    if (fold) foldEarlierTurns(block);
    else if (command.trim().toLowerCase() === "/undo") unfold();
    if (conversationId() !== null) await refreshPage();
    block.scrollIntoView({ block: "nearest" });
  } catch (reason) {
    block.remove();
    if (typed) restoreText(command);
    showComposerError(errorMessage(reason));
  }
}

async function showBill(command, typed) {
  try {
    if (!(await summarise())) return;
    await refreshPage();
    document.getElementById("summary")?.focus();
  } catch (reason) {
    if (typed) restoreText(command);
    showComposerError(errorMessage(reason));
  }
}

async function resultOf(command) {
  const conversation = conversationId();
  if (conversation !== null) {
    return (await send("POST", address(`/api/conversations/${conversation}/commands`), { command })).json();
  }
  if (isTemporary()) throw new Error(t("Commands are for conversations that are stored."));
  if (command.trim().toLowerCase() !== "/help") throw new Error(t("There is no conversation yet. Ask a question first."));
  const lines = options().map((one) => `- ${one.dataset.command}: ${one.querySelector("span").textContent}`);
  return { text: lines.join("\n"), fold: false };
}

function appendResult(command) {
  const block = document.getElementById("result-template").content.firstElementChild.cloneNode(true);
  block.querySelector(".command code").textContent = command;
  block.classList.add("waiting");
  const transcript = document.getElementById("transcript");
  removeWelcome();
  transcript.append(block);
  block.scrollIntoView({ block: "nearest" });
  return block;
}

/** Draw a result as paragraphs and lists: lines that begin with a dash are the items of a list. */
function fillResult(block, text) {
  block.classList.remove("waiting");
  const output = block.querySelector(".output");
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const isItem = line.startsWith("- ");
    if (isItem && output.lastElementChild?.tagName !== "UL") output.append(document.createElement("ul"));
    const part = document.createElement(isItem ? "li" : "p");
    part.textContent = isItem ? line.slice(2) : line;
    (isItem ? output.lastElementChild : output).append(part);
  }
}

/** Fold everything before `block` behind a button that unfolds it. */
function foldEarlierTurns(block) {
  const transcript = document.getElementById("transcript");
  transcript.querySelector(".unfold")?.parentElement.remove();
  const earlier = [...transcript.children].filter((one) => one !== block && !one.matches(".horizon, .running"));
  const turns = earlier.filter((one) => one.matches(".turn")).length;
  if (!turns) return;
  for (const one of earlier) one.hidden = true;
  const holder = document.getElementById("unfold-template").content.firstElementChild.cloneNode(true);
  const button = holder.querySelector("button");
  button.textContent = tn("Show {n} earlier turn", "Show {n} earlier turns", turns);
  button.addEventListener("click", unfold);
  transcript.prepend(holder);
}

/** Unfold the earlier turns. */
function unfold() {
  const transcript = document.getElementById("transcript");
  transcript.querySelector(".unfold")?.parentElement.remove();
  for (const one of transcript.children) one.hidden = false;
  if (savedView()) drawView(savedView());
}

/** Let command results be dismissed. */
export function enableCommandResults() {
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-dismiss]")) return;
    event.target.closest(".result").remove();
    composer()?.elements.question.focus();
  });
}

// --- the suggestion list

function options() {
  return [...document.querySelectorAll("#commands [role=option]")];
}

/**
 * Show the commands that fit what is typed, the best one chosen; arrows choose another, Escape closes. Tab takes the
 * chosen one into the box. So does Enter, but it carries out what is typed in full or can be nothing else.
 */
export function enableCommandList() {
  if (!composer()) return;
  const box = composer().elements.question;
  const list = document.getElementById("commands");

  const choose = (option) => {
    for (const one of options()) one.setAttribute("aria-selected", String(one === option));
    if (option) box.setAttribute("aria-activedescendant", option.id);
    else box.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  };
  const close = () => {
    list.hidden = true;
    choose(null);
  };
  const accept = (option) => {
    if (option.dataset.mention) mention(option, box).catch(showError);
    else fill(option.dataset.command);
    close();
    box.focus();
  };
  const typed = () => box.value.trim().toLowerCase();
  const suggest = async () => {
    const word = mentionIn(box);
    const mentions = word === null ? [] : await mentionsOf(word).catch(() => []);
    // More was typed meanwhile, and is looked for by itself.
    if (word !== mentionIn(box)) return;
    for (const one of list.querySelectorAll("[data-mention]")) one.remove();
    list.append(...mentions);
    for (const one of options()) one.hidden = !one.dataset.mention && (!typed() || !one.dataset.command.startsWith(typed()));
    const shown = options().filter((one) => !one.hidden);
    list.hidden = !shown.length;
    choose(shown.find((one) => one.dataset.command === typed()) ?? shown[0] ?? null);
  };

  // Text that the page itself puts into the box, such as a failed command, opens no list.
  box.addEventListener("input", (event) => (event.isTrusted ? suggest() : close()));
  // Who cannot scroll otherwise takes the focus into the list, and uses the arrow keys there.
  box.addEventListener("blur", (event) => {
    if (event.relatedTarget !== list) close();
  });
  list.addEventListener("blur", close);
  composer().addEventListener("submit", close);
  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option) accept(option);
  });
  // Before the composer's own keys, which send on Enter.
  box.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return;
    const shown = options().filter((one) => !one.hidden);
    const chosen = shown.findIndex((one) => one.getAttribute("aria-selected") === "true");
    const sends = event.key === "Enter" && !event.shiftKey;
    if (sends && shown[chosen].dataset.command === typed()) return;
    if (event.key === "ArrowDown") choose(shown[(chosen + 1) % shown.length]);
    else if (event.key === "ArrowUp") choose(shown.at(chosen - 1));
    else if (event.key === "Escape") close();
    else if (sends || (event.key === "Tab" && !event.shiftKey)) accept(shown[chosen]);
    else return;
    if (sends && shown.length === 1 && !shown[0].dataset.mention) composer().requestSubmit();
    event.preventDefault();
    event.stopImmediatePropagation();
  });
}
