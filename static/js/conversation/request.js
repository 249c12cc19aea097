// Send a question, with an idempotency key by which the server recognises a resend.
import { send } from "../lib/api.js";
import { composer } from "./composer.js";

/** Return a key that no other question has. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Send a question and return the stream of its turn. Throws Refusal, or TypeError if it may not have arrived. */
export function sendQuestion(body, key) {
  return send("POST", composer().dataset.stream, body, { "Idempotency-Key": key });
}
