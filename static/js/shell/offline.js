// Offline: a service worker shows a page of ours where the server cannot be reached, instead of the browser's.
import { address } from "../lib/address.js";
import { serviceWorkerAddress } from "../lib/html.js";

/** Register the service worker, where the browser takes one: over TLS, or on this machine. */
export function enableOfflinePage() {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register(serviceWorkerAddress(), { scope: address("/") }).catch(() => {});
}
