// Where the reader is in the transcript.

/** Begin at the latest turn, unless the address names a place. */
export function showTheEnd() {
  const main = document.getElementById("main");
  const named = location.hash || ["at", "before"].some((name) => new URLSearchParams(location.search).has(name));
  if (!named && document.getElementById("transcript")) main.scrollTop = main.scrollHeight;
}

/** Change the page; whoever was reading at its end stays at its end, and nobody else is moved. */
export function keepAtEnd(change) {
  const main = document.getElementById("main");
  const atEnd = main.scrollHeight - main.scrollTop - main.clientHeight < 120;
  change();
  if (atEnd) main.scrollTop = main.scrollHeight;
}
