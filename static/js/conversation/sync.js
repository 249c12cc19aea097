// Two tabs or two devices show the same: look now and then whether the conversation is still as it is shown here.
import { keepLooking } from "../lib/polling.js";
import { reached, toast } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { composer, conversationId, isBusy } from "./composer.js";

/** How often a tab that is looked at looks. */
export const pace = { seconds: 3 };

/** Keep in step with what others do to this conversation, while the page is visible. */
export function keepInStep() {
  if (!composer()) return;
  let gone = false;
  let lost = false;
  const look = async () => {
    const id = conversationId();
    // An answer that is followed brings its news itself.
    if (id === null || isBusy()) return;
    const response = await fetch(`/api/conversations/${id}`, { method: "HEAD" }).catch(() => null);
    if (lost && response) reached();
    lost = !response;
    if (lost || conversationId() !== id) return;
    if (response.status === 404 && !gone) tellGone();
    else if (response.ok && gone) toldGone()?.remove();
    gone = response.status === 404;
    const { tag } = document.getElementById("transcript").dataset;
    if (response.ok && !isBusy() && response.headers.get("ETag") !== tag) await refreshPage();
  };
  keepLooking(look, pace);
}

function toldGone() {
  return document.querySelector(".toast.gone");
}

function tellGone() {
  const news = toast("This conversation was deleted, in another window or on another device.", true);
  news.classList.add("gone");
  const form = document.createElement("form");
  form.method = "post";
  form.action = `/conversations/${conversationId()}/restore`;
  const button = document.createElement("button");
  button.type = "submit";
  button.textContent = "Bring it back";
  form.append(button);
  news.append(" ", form);
}
