// What a screen reader hears of an answer: that it begins, whole sentences now and then, how it ended.
const SECONDS_BETWEEN = 4;
const LINES_KEPT = 20;
const END_OF_SENTENCE = /[.!?…。！？:]["'”’)\]]*\s+(?=\S)|\n+/gu;

const told = { length: 0, at: 0 };

/** Say that an answer begins. */
export function answerBegins() {
  told.length = 0;
  told.at = performance.now();
  say("Answer begins.");
}

/** Say the sentences that were finished since the last time, if that is a while ago. */
export function answerGrows(answer) {
  if (performance.now() - told.at < SECONDS_BETWEEN * 1000) return;
  const text = answer.textContent;
  const rest = text.slice(told.length);
  const ends = [...rest.matchAll(END_OF_SENTENCE)].map((match) => match.index + match[0].length);
  if (!ends.length) return;
  tellUpTo(text, told.length + ends.at(-1));
}

/** Say the rest of an answer and how it ended; trouble is said at once. */
export function answerEnds(turn, { status, error, sources }) {
  const text = turn.querySelector(".answer")?.textContent ?? "";
  tellUpTo(text, text.length);
  if (error) {
    alarm(`${text ? "The answer broke off." : "No answer."} ${error.message}`);
    return;
  }
  const cited = sources?.filter((source) => source.cited).length ?? 0;
  say(`Answer ${status === "stopped" ? "stopped" : "complete"}, ${cited} ${cited === 1 ? "source" : "sources"}.`);
}

/** Say something now, whatever is being said. */
function alarm(sentence) {
  const box = document.getElementById("alarm");
  if (box) box.textContent = sentence;
}

function tellUpTo(text, end) {
  const sentence = text.slice(told.length, end).trim();
  told.length = end;
  told.at = performance.now();
  if (sentence) say(sentence);
}

function say(sentence) {
  const log = document.getElementById("announcer");
  if (!log) return;
  const line = document.createElement("p");
  line.textContent = sentence;
  log.append(line);
  while (log.children.length > LINES_KEPT) log.firstElementChild.remove();
}
