// Ask without leaving the page: the question appears at once, the answer streams below it.
import { address } from "../lib/address.js";
import { t } from "../lib/language.js";
import { errorMessage } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { isCommand, runCommand } from "./commands.js";
import {
  composer,
  conversationId,
  fill,
  focusComposer,
  isBusy,
  restoreText,
  showComposerError,
  updateBusy,
} from "./composer.js";
import { remember, unacknowledged } from "./draft.js";
import { withOverflowChoice } from "./overflow.js";
import { restorePictures, takePictures } from "./pictures.js";
import { newKey, sendQuestion } from "./request.js";
import { scopeOf } from "./scope.js";
import { TemporaryTurn, isTemporary } from "./temporary.js";
import { TurnView } from "./turn.js";
import { removeWelcome } from "./welcome.js";

/** Let the composer, and every button that stands for a question or command, ask in place. */
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
    showComposerError(null);
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

/** Ask a question, or answer a confirmation. What is not accepted goes back into the box. */
async function ask(question, more) {
  const typed = more.confirms_turn ? "" : question;
  if (isBusy()) {
    restoreText(typed);
    const offline = document.querySelector(".turn[data-lost]") !== null;
    const why = offline ? t("Not connected. Your question is still here.") : t("Wait for the current answer to finish, or stop it.");
    return showComposerError(why, { whileBusy: true, whileOffline: offline });
  }
  const pictures = more.confirms_turn ? [] : takePictures();
  const view = new (isTemporary() ? TemporaryTurn : TurnView)(appendTurn(question, pictures));
  view.element.querySelector(".stop").addEventListener("click", () => view.stop());
  // Now and not when the answer has ended: by then the reader may be elsewhere.
  focusComposer();
  try {
    const response = isTemporary() ? await view.ask(question) : await withOverflowChoice((choice) => post(question, pictures, { ...more, ...choice }));
    if (response) await follow(view, response);
    else withdraw(view.element, typed, pictures);
  } catch (reason) {
    withdraw(view.element, typed, pictures);
    const offline = reason instanceof TypeError;
    const message = errorMessage(reason);
    showComposerError(offline && typed ? `${message} ${t("Your question is still here.")}` : message, { whileOffline: offline });
  }
  return undefined;
}

async function post(question, pictures, more) {
  const conversation = conversationId();
  const scope = more.confirms_turn ? {} : scopeOf();
  const images = pictures.length ? { images: pictures.map((picture) => picture.url) } : {};
  const project = composer().elements.project_id?.value;
  const place = conversation !== null ? { conversation_id: conversation } : project ? { project_id: Number(project) } : {};
  const model = composer().elements.model?.value;
  const body = { question, ...(model ? { model } : {}), ...place, ...images, ...scope, ...more };
  const unsent = unacknowledged();
  // A question that may have arrived keeps its key, so that it is never answered twice.
  const key = unsent && JSON.stringify(unsent.body) === JSON.stringify(body) ? unsent.key : newKey();
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
    if (data.conversation_id) register(view.element, data);
    show(name, data);
  };
  await view.read(response);
}

function withdraw(element, typed, pictures) {
  element.remove();
  restorePictures(pictures);
  updateBusy();
  restoreText(typed);
}

/** Put a new turn at the end of the transcript. */
function appendTurn(question, pictures) {
  const transcript = document.getElementById("transcript");
  removeWelcome();
  document.querySelector(".confirmation")?.remove();
  const element = document.getElementById("turn-template").content.firstElementChild.cloneNode(true);
  element.querySelector(".question").textContent = question;
  for (const { name } of pictures) {
    const line = document.createElement("p");
    line.className = "picture-name";
    line.textContent = name;
    element.querySelector(".question").append(line);
  }
  transcript.append(element);
  element.scrollIntoView({ block: "end" });
  return element;
}

/** Note the turn's number and, for a first question, the conversation that was created for it. */
function register(element, data) {
  // Another tab may have added the turn already, and a known key returns a turn that is already here.
  for (const same of document.querySelectorAll(`.turn[data-turn="${data.turn}"]`)) if (same !== element) same.remove();
  element.dataset.turn = data.turn;
  element.id = `turn-${data.turn}`;
  if (conversationId() !== null) return;
  composer().elements.conversation_id.value = data.conversation_id;
  history.replaceState(history.state, "", address(`/conversations/${data.conversation_id}`));
  refreshPage();
}
