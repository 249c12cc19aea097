// Go to the page on which a turn is shown.

/** Leave for the turn of a stream that was opened; the server goes on answering meanwhile. */
export async function goToItsTurn(response) {
  const { conversation_id: conversation, turn } = await (await fetch(`/api/turns/${response.headers.get("X-Turn-Id")}`)).json();
  response.body.cancel().catch(() => null);
  const there = `/conversations/${conversation}`;
  if (location.pathname === there) {
    history.replaceState(null, "", `${there}#turn-${turn}`);
    location.reload();
  } else location.assign(`${there}#turn-${turn}`);
}
