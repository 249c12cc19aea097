// Part of the page drawn anew, without taking from a reader what is in hand: the focus, a selection, what is unfolded.
import { replaceBehind } from "./html.js";

/**
 * Put a turn that was drawn anew in the place of the one that is known, and return the element that stands there now.
 * The blocks of the answer that read the same stay the elements that they were: what is marked in them stays marked.
 */
export function replaceTurn(known, made) {
  const held = known.contains(document.activeElement) ? document.activeElement : null;
  unfold(made, known);
  const [answer, again] = [known, made].map((turn) => turn.querySelector(":scope > .answer"));
  if (answer && again) {
    replaceAround(answer, again);
    takeBlocks(answer, again);
    takeAttributes(answer, again);
    takeAttributes(known, made);
  } else known.replaceWith(made);
  const turn = known.isConnected ? known : made;
  if (held && document.activeElement !== held) focusAgain(turn, held);
  return turn;
}

/** Unfold in `made` what is unfolded in `known`. */
function unfold(made, known) {
  const nameOf = (details) => `${details.className} ${details.dataset.step ?? ""}`;
  const open = new Set([...known.querySelectorAll("details[open]:not([data-closes])")].map(nameOf));
  for (const details of made.querySelectorAll("details")) if (open.has(nameOf(details))) details.open = true;
}

/** Replace everything around an element by what stands around its like. */
function replaceAround(element, like) {
  while (element.previousSibling) element.previousSibling.remove();
  while (element.nextSibling) element.nextSibling.remove();
  while (like.nextSibling) element.parentNode.append(like.nextSibling);
  while (like.previousSibling) element.parentNode.prepend(like.previousSibling);
}

function takeBlocks(answer, again) {
  const [blocks, drawn] = [[...answer.children], [...again.children]];
  const differs = drawn.findIndex((block, n) => !blocks[n]?.isEqualNode(block));
  const keep = differs < 0 ? drawn.length : differs;
  for (const block of drawn.slice(0, keep)) block.remove();
  replaceBehind(answer, keep, again);
}

function takeAttributes(element, like) {
  for (const name of element.getAttributeNames()) if (!like.hasAttribute(name)) element.removeAttribute(name);
  for (const name of like.getAttributeNames()) element.setAttribute(name, like.getAttribute(name));
}

/** Let whoever was in a part be at the same control again, or at the part itself. */
export function focusAgain(part, held) {
  const isSame = (one) => one.className === held.className && one.textContent === held.textContent && !one.disabled;
  const same = [...part.querySelectorAll(held.tagName)].find(isSame);
  if (!same) part.tabIndex = -1;
  (same ?? part).focus({ preventScroll: true });
}
