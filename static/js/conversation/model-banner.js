// The banner says that the model is being loaded; it takes that back when it is.
import { keepLooking } from "../lib/polling.js";
import { refreshPage } from "../shell/page.js";

const pace = { seconds: 1 };
const banner = () => document.getElementById("starting");

/** Look whether the model is there, for as long as the page says that it is not. */
export function enableStarting() {
  if (!banner()) return;
  keepLooking(async () => {
    if (banner() && (await (await fetch("/readyz")).json()).parts.model !== "starting") await refreshPage();
  }, pace);
}
