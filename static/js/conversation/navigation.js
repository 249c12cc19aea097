// Go to the page that shows a turn.
import { address } from "../lib/address.js";

/** Go to the turn of a stream that was opened; the server keeps answering meanwhile. */
export async function goToTurn(response) {
  const { conversation_id: conversation, turn } = await (await fetch(address(`/api/turns/${response.headers.get("X-Turn-Id")}`))).json();
  response.body.cancel().catch(() => null);
  const there = address(`/conversations/${conversation}`);
  if (location.pathname === there) {
    history.replaceState(null, "", `${there}#turn-${turn}`);
    location.reload();
  } else location.assign(`${there}#turn-${turn}`);
}
