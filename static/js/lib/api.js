// Ask the JSON API.
import { t } from "./language.js";

/** An error from the server: its type, its sentence, and details for a decision. */
class Refusal extends Error {
  constructor({ type, message, details }) {
    super(message);
    this.type = type;
    this.details = details;
  }
}

/** Send JSON and return the response. Throws Refusal if the server says no, TypeError if there is no server. */
export async function send(method, url, body, headers = {}, signal = null) {
  const response = await fetch(url, {
    method,
    signal,
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw await refusalOf(response);
  return response;
}

/** Return a response's error. */
export async function refusalOf(response) {
  const body = await response.json().catch(() => null);
  return new Refusal(body?.error ?? { type: "Unknown", message: t("The server answered with status {status}.", { status: response.status }) });
}
