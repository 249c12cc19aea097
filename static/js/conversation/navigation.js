// Go to the page that shows a turn.

/** Go to the turn of a stream that was opened; the server keeps answering meanwhile. */
export async function goToTurn(response) {
  const { conversation_id: conversation, turn } = await (await fetch(`/api/turns/${response.headers.get("X-Turn-Id")}`)).json();
  response.body.cancel().catch(() => null);
  const there = `/conversations/${conversation}`;
  if (location.pathname === there) {
    history.replaceState(null, "", `${there}#turn-${turn}`);
    location.reload();
  } else location.assign(`${there}#turn-${turn}`);
}
