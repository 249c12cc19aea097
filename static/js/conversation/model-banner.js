// The banner that says the model is loading; it goes once the model is ready.
import { address } from "../lib/address.js";
import { poll } from "../lib/polling.js";
import { refreshPage } from "../shell/page.js";

const interval = { seconds: 1 };
const banner = () => document.getElementById("starting");

/** Poll until the model is ready, while the page says it is loading. */
export function enableModelBanner() {
  if (!banner()) return;
  poll(async () => {
    if (!banner()) return;
    const { parts } = await (await fetch(address("/readyz"))).json();
    if (!["starting", "slow"].includes(parts.model)) await refreshPage();
  }, interval);
}
