// The gauge below the composer: what the next question sends, part by part; updated as the reader types.
import { number, t } from "../lib/language.js";
import { composer } from "./composer.js";

const PARTS = ["system", "tools", "summary", "history", "passages", "question", "free"];
const MIN_PERCENT = 3;
// The server's own estimate: rag_assistant/history/budget.py.
const TOKENS_PER_MESSAGE = 4;
const ASCII_CHARACTERS_PER_TOKEN = 3.6;
const OTHER_BYTES_PER_TOKEN = 1.6;

/** Update the gauge while typing; Escape closes its figures. */
export function enableGauge() {
  document.addEventListener("input", (event) => {
    if (event.target.id === "question") drawGauge();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.activeElement?.closest(".gauge")) document.activeElement.blur();
  });
  drawGauge();
}

/** Draw the figures of a view, or redraw the current ones; passages stay as the last answer had them. */
export function drawGauge(view = null) {
  const gauge = document.querySelector("#gauge .gauge");
  if (!gauge) return;
  const previous = JSON.parse(gauge.dataset.tokens);
  const tokens = { ...previous, ...view, passages: previous.passages, question: questionTokens(Number(gauge.dataset.ratio)) };
  gauge.dataset.tokens = JSON.stringify(tokens);
  const sizes = Object.fromEntries(PARTS.map((name) => [name, tokens[name] ?? 0]));
  const total = Object.values(sizes).reduce((sum, size) => sum + size, 0) - sizes.free;
  // The bar is of use where a limit is near.
  gauge.classList.toggle("near", total > 0.7 * (tokens.limit ?? Infinity));
  sizes.free = Math.max(0, (tokens.limit ?? 0) - total);
  drawBar(gauge, sizes);
  for (const name of PARTS) drawRow(gauge.querySelector(`tr[data-part="${name}"]`), sizes[name]);
  for (const element of gauge.querySelectorAll(".total b, b.total, .total .sum")) element.textContent = number(total);
}

function drawBar(gauge, sizes) {
  const widths = widthsOf(sizes);
  let start = 0;
  for (const name of PARTS) {
    const piece = gauge.querySelector(`.tokens-bar .part-${name}`);
    piece.setAttribute("x", `${start}%`);
    piece.setAttribute("width", `${widths[name] ?? 0}%`);
    start += widths[name] ?? 0;
  }
  const rows = PARTS.filter((name) => sizes[name]);
  const labels = rows.map((name) => `${labelOf(gauge, name)} ${number(sizes[name])}`);
  gauge.querySelector(".tokens-bar").setAttribute("aria-label", t("Estimated tokens: {parts}.", { parts: labels.join(", ") }));
}

/** Return the share of each part in percent; what the smallest parts gain, the largest loses. */
function widthsOf(sizes) {
  const present = Object.entries(sizes).filter(([, size]) => size);
  const whole = present.reduce((sum, [, size]) => sum + size, 0);
  const widths = Object.fromEntries(present.map(([name, size]) => [name, Math.max(MIN_PERCENT, (100 * size) / whole)]));
  const [largest] = Object.entries(widths).sort(([, one], [, other]) => other - one)[0] ?? [];
  const sum = Object.values(widths).reduce((all, width) => all + width, 0);
  if (largest) widths[largest] -= sum - 100;
  return widths;
}

function labelOf(gauge, name) {
  return gauge.querySelector(`tr[data-part="${name}"] .part-words`).textContent;
}

function drawRow(row, size) {
  row.hidden = !size;
  row.querySelector("td").textContent = number(size);
}

function questionTokens(ratio) {
  const text = composer()?.elements.question.value.trim() ?? "";
  if (!text) return 0;
  const ascii = [...text].filter((one) => one.codePointAt(0) < 128).length;
  const others = new TextEncoder().encode(text).length - ascii;
  return Math.ceil((TOKENS_PER_MESSAGE + ascii / ASCII_CHARACTERS_PER_TOKEN + others / OTHER_BYTES_PER_TOKEN) * ratio);
}
