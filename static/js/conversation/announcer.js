// What a screen reader hears of an answer: that it begins, whole sentences now and then, how it ended.
import { t, tn } from "../lib/language.js";

const INTERVAL_SECONDS = 4;
const MAX_LINES = 20;
const END_OF_SENTENCE = /[.!?…。！？:]["'”’)\]]*\s+(?=\S)|\n+/gu;

const announced = { length: 0, at: 0 };

/** Announce that an answer begins. */
export function answerBegins() {
  announced.length = 0;
  announced.at = performance.now();
  announce(t("Answer begins."));
}

/** Announce the sentences finished since the last announcement, if that was a while ago. */
export function answerGrows(answer) {
  if (performance.now() - announced.at < INTERVAL_SECONDS * 1000) return;
  const text = textOf(answer);
  const rest = text.slice(announced.length);
  const ends = [...rest.matchAll(END_OF_SENTENCE)].map((match) => match.index + match[0].length);
  if (!ends.length) return;
  announceUpTo(text, announced.length + ends.at(-1));
}

/** Announce the rest of an answer and how it ended; errors interrupt. */
export function answerEnds(turn, { status, error, sources }) {
  const text = textOf(turn.querySelector(".answer"));
  announceUpTo(text, text.length);
  if (error) {
    alarm(`${text ? t("Incomplete answer.") : t("No answer.")} ${error.message}`);
    return;
  }
  announce(`${status === "stopped" ? t("Answer stopped.") : t("Answer complete.")} ${countOf(sources ?? [])}`);
}

/** Return an answer's text, without the bars above its code: a language and a button. */
function textOf(answer) {
  const copy = answer?.cloneNode(true);
  for (const bar of copy?.querySelectorAll(".code-bar") ?? []) bar.remove();
  return copy?.textContent ?? "";
}

/** Return what stands below an answer: its sources, or the passages it was given where it cites none. */
function countOf(sources) {
  const cited = sources.filter((source) => source.cited).length;
  if (cited) return tn("{n} source.", "{n} sources.", cited);
  if (sources.length) return tn("{n} passage provided.", "{n} passages provided.", sources.length);
  return t("No sources.");
}

/** Announce something at once, interrupting the rest. */
function alarm(sentence) {
  const box = document.getElementById("alarm");
  if (box) box.textContent = sentence;
}

function announceUpTo(text, end) {
  const sentence = text.slice(announced.length, end).trim();
  announced.length = end;
  announced.at = performance.now();
  if (sentence) announce(sentence);
}

function announce(sentence) {
  const log = document.getElementById("announcer");
  if (!log) return;
  const line = document.createElement("p");
  line.textContent = sentence;
  log.append(line);
  while (log.children.length > MAX_LINES) log.firstElementChild.remove();
}
