// Keep tabs and devices in sync: poll whether the conversation has changed since it was drawn.
import { address } from "../lib/address.js";
import { t } from "../lib/language.js";
import { poll } from "../lib/polling.js";
import { clearUnreachable, toast } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";
import { composer, conversationId, isBusy } from "./composer.js";

/** How often a visible tab polls. */
export const interval = { seconds: 3 };

/** Follow changes made elsewhere to this conversation while the page is visible. */
export function enableSync() {
  if (!composer()) return;
  let deleted = false;
  let offline = false;
  const check = async () => {
    const id = conversationId();
    // An answer that is being followed updates the page itself.
    if (id === null || isBusy()) return;
    const response = await fetch(address(`/api/conversations/${id}`), { method: "HEAD" }).catch(() => null);
    if (offline && response) clearUnreachable();
    offline = !response;
    // Signed out, here or elsewhere: the way back leads through the page to sign in.
    if (response?.status === 401) location.assign(location.pathname + location.search);
    if (offline || conversationId() !== id) return;
    if (response.status === 404 && !deleted) showDeleted();
    else if (response.ok && deleted) deletedToast()?.remove();
    deleted = response.status === 404;
    const { tag } = document.getElementById("transcript").dataset;
    if (response.ok && !isBusy() && response.headers.get("ETag") !== tag) await refreshPage();
  };
  poll(check, interval);
}

function deletedToast() {
  return document.querySelector(".toast.deleted");
}

function showDeleted() {
  const element = toast(t("This conversation was deleted in another window or on another device."), true);
  element.classList.add("deleted");
  const form = document.createElement("form");
  form.method = "post";
  form.action = address(`/conversations/${conversationId()}/restore`);
  const button = document.createElement("button");
  button.type = "submit";
  button.textContent = t("Restore");
  form.append(button);
  element.append(" ", form);
}
