// Ask without leaving the page: the question appears at once, the answer streams below it.
import { refreshFrame } from "./frame.js";
import { TurnView } from "./turn.js";

/** Let the composer, and the example questions, ask in place. */
export function enableAsking() {
  const composer = document.getElementById("composer");
  if (!composer) return;
  const box = composer.elements.question;
  composer.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(composer, box.value);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      composer.requestSubmit();
    }
  });
  for (const example of document.querySelectorAll(".examples form")) {
    example.addEventListener("submit", (event) => {
      event.preventDefault();
      ask(composer, example.elements.question.value);
    });
  }
}

/** A key by which the server knows a question again that is sent once more, since its answer got lost on the way. */
const lastSent = { question: null, key: null };

function keyFor(question) {
  if (lastSent.question !== question) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    lastSent.question = question;
    lastSent.key = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  return lastSent.key;
}

async function ask(composer, question) {
  const error = document.getElementById("composer-error");
  const button = composer.querySelector("button[type=submit]");
  error.hidden = true;
  if (!question.trim()) return;
  if (button.disabled) {
    error.textContent = "An answer is being written. Ask when it has ended, or stop it.";
    error.hidden = false;
    return;
  }
  button.disabled = true;
  const element = place(question);
  composer.elements.question.value = "";
  try {
    const response = await fetch(composer.dataset.ask, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": keyFor(question) },
      body: JSON.stringify(body(composer, question)),
    });
    lastSent.question = null;
    if (!response.ok) throw new Error((await response.json()).error.message);
    const view = new TurnView(element);
    const show = view.show.bind(view);
    view.show = (name, id, data) => {
      if (data.conversation_id) enter(composer, element, data);
      show(name, id, data);
    };
    element.querySelector(".stop").addEventListener("click", () => stop(view));
    await view.take(response);
  } catch (reason) {
    // Nothing was accepted: the question goes back to where it was typed.
    element.remove();
    composer.elements.question.value = question;
    error.textContent = reason instanceof TypeError ? "The server cannot be reached. Your question is still here." : reason.message;
    error.hidden = false;
  } finally {
    button.disabled = false;
    composer.elements.question.focus();
  }
}

function body(composer, question) {
  const conversation = composer.elements.conversation_id.value;
  return conversation ? { question, conversation_id: Number(conversation) } : { question };
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
function enter(composer, element, data) {
  element.dataset.turn = data.turn;
  element.id = `turn-${data.turn}`;
  const transcript = document.getElementById("transcript");
  if (composer.elements.conversation_id.value) return;
  const url = `/conversations/${data.conversation_id}`;
  composer.elements.conversation_id.value = data.conversation_id;
  transcript.dataset.view = `/api${url}`;
  history.replaceState(null, "", url);
  refreshFrame();
}

function stop(view) {
  if (view.turnId === null) return;
  view.say("Stopping.");
  fetch(`/api/turns/${view.turnId}/stop`, { method: "POST" });
}
