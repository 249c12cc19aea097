// Where the reader is in the transcript.

/** Scroll to the latest turn, unless the address names one: a turn that is not on this page is fetched. */
export function scrollToEnd() {
  const turn = location.hash.match(/^#turn-([1-9]\d{0,8})$/)?.[1];
  const first = document.querySelector("#transcript .turn");
  if (turn && first && Number(turn) < Number(first.dataset.turn)) {
    location.replace(`${location.pathname}?at=${turn}${location.hash}`);
    return;
  }
  const main = document.getElementById("main");
  const named = location.hash || ["at", "before"].some((name) => new URLSearchParams(location.search).has(name));
  if (!named && document.getElementById("transcript")) main.scrollTop = main.scrollHeight;
}

/** Change the page; a reader at its end stays at its end, and nobody else is moved. */
export function keepAtEnd(change) {
  const main = document.getElementById("main");
  const atEnd = main.scrollHeight - main.scrollTop - main.clientHeight < 120;
  change();
  if (atEnd) main.scrollTop = main.scrollHeight;
}
