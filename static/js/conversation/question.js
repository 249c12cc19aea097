// Ask without leaving the page: the question appears at once, the answer streams below it.
import { sentenceOf } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { isCommand, runCommand } from "./commands.js";
import { complain, composer, conversationId, fill, giveBack, isBusy, readyToType, showWhetherBusy } from "./composer.js";
import { remember, unacknowledged } from "./draft.js";
import { decided } from "./overflow.js";
import { newKey, sendQuestion } from "./request.js";
import { scopeOf } from "./scope.js";
import { TurnView } from "./turn.js";

/** Let the composer ask in place, and every button that stands for something to say. */
export function enableAsking() {
  if (!composer()) return;
  const box = composer().elements.question;
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!("asks" in form.dataset)) return;
    event.preventDefault();
    const { question, confirms_turn: confirms } = Object.fromEntries(new FormData(form, event.submitter));
    const typed = form === composer();
    if (!question.trim()) return;
    complain(null);
    if (typed) fill("");
    if (isCommand(question)) runCommand(question, typed);
    else ask(question, confirms ? { confirms_turn: Number(confirms) } : {});
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      composer().requestSubmit();
    }
  });
}

/** Ask a question, or answer one that a turn asks. What is not accepted goes back to where it was typed. */
async function ask(question, more) {
  const typed = more.confirms_turn ? "" : question;
  if (isBusy()) {
    giveBack(typed);
    const lost = document.querySelector(".turn[data-lost]") !== null;
    const why = lost ? "Not connected. Your question is kept here." : "An answer is being written. Ask when it has ended, or stop it.";
    return complain(why, { whileBusy: true, whileLost: lost });
  }
  const view = new TurnView(place(question));
  view.element.querySelector(".stop").addEventListener("click", () => {
    readyToType();
    view.stop();
  });
  // Now and not when the answer has ended: by then the person may be elsewhere.
  readyToType();
  try {
    const response = await decided((choice) => post(question, { ...more, ...choice }));
    if (response) await follow(view, response);
    else withdraw(view.element, typed);
  } catch (reason) {
    withdraw(view.element, typed);
    const lost = reason instanceof TypeError;
    complain(lost && typed ? `${sentenceOf(reason)} Your question is still here.` : sentenceOf(reason), { whileLost: lost });
  }
  return undefined;
}

async function post(question, more) {
  const conversation = conversationId();
  const scope = more.confirms_turn ? {} : scopeOf();
  const body = { question, ...(conversation === null ? {} : { conversation_id: conversation }), ...scope, ...more };
  const unknown = unacknowledged();
  // A question whose fate is unknown keeps its key, so that it is never answered twice.
  const key = unknown && JSON.stringify(unknown.body) === JSON.stringify(body) ? unknown.key : newKey();
  const forget = remember(body, key);
  try {
    const response = await sendQuestion(body, key);
    forget();
    return response;
  } catch (reason) {
    if (!(reason instanceof TypeError)) forget();
    throw reason;
  }
}

/** Show a turn as it is answered. */
async function follow(view, response) {
  const show = view.show.bind(view);
  view.show = (name, data) => {
    if (data.conversation_id) enter(view.element, data);
    show(name, data);
  };
  await view.take(response);
}

function withdraw(element, typed) {
  element.remove();
  showWhetherBusy();
  giveBack(typed);
}

/** Put a new turn at the end of the transcript. */
function place(question) {
  const transcript = document.getElementById("transcript");
  transcript.querySelector(".welcome")?.remove();
  const element = document.getElementById("turn-template").content.firstElementChild.cloneNode(true);
  element.querySelector(".question").textContent = question;
  transcript.append(element);
  element.scrollIntoView({ block: "end" });
  return element;
}

/** Take note of the turn's number and, for a first question, of the conversation that was made for it. */
function enter(element, data) {
  // Another tab's news may have brought the turn already, and a key that was known brings one that stands here.
  for (const same of document.querySelectorAll(`.turn[data-turn="${data.turn}"]`)) if (same !== element) same.remove();
  element.dataset.turn = data.turn;
  element.id = `turn-${data.turn}`;
  if (conversationId() !== null) return;
  composer().elements.conversation_id.value = data.conversation_id;
  history.replaceState(history.state, "", `/conversations/${data.conversation_id}`);
  refreshPage();
}
