// Patch part of the page, preserving the reader's focus, selection and unfolded details.
import { replaceAfter } from "./html.js";

/**
 * Replace a turn with its redrawn version, and return the element that stands there now.
 * Blocks of the answer that did not change keep their elements, so that a selection in them survives.
 */
export function replaceTurn(current, drawn) {
  const focused = current.contains(document.activeElement) ? document.activeElement : null;
  copyUnfolded(drawn, current);
  const [answer, drawnAnswer] = [current, drawn].map((turn) => turn.querySelector(":scope > .answer"));
  if (answer && drawnAnswer) {
    replaceAround(answer, drawnAnswer);
    updateBlocks(answer, drawnAnswer);
    copyAttributes(answer, drawnAnswer);
    copyAttributes(current, drawn);
  } else current.replaceWith(drawn);
  const turn = current.isConnected ? current : drawn;
  if (focused && document.activeElement !== focused) restoreFocus(turn, focused);
  return turn;
}

/** Unfold in `drawn` what is unfolded in `current`. */
function copyUnfolded(drawn, current) {
  const nameOf = (details) => `${details.className} ${details.dataset.step ?? ""}`;
  const open = new Set([...current.querySelectorAll("details[open]:not([data-closes])")].map(nameOf));
  for (const details of drawn.querySelectorAll("details")) if (open.has(nameOf(details))) details.open = true;
}

/** Replace everything around an element with what stands around its redrawn version. */
function replaceAround(element, like) {
  while (element.previousSibling) element.previousSibling.remove();
  while (element.nextSibling) element.nextSibling.remove();
  while (like.nextSibling) element.parentNode.append(like.nextSibling);
  while (like.previousSibling) element.parentNode.prepend(like.previousSibling);
}

function updateBlocks(answer, drawnAnswer) {
  const [blocks, drawnBlocks] = [[...answer.children], [...drawnAnswer.children]];
  const firstChanged = drawnBlocks.findIndex((block, n) => !blocks[n]?.isEqualNode(block));
  const keep = firstChanged < 0 ? drawnBlocks.length : firstChanged;
  for (const block of drawnBlocks.slice(0, keep)) block.remove();
  replaceAfter(answer, keep, drawnAnswer);
}

function copyAttributes(element, like) {
  for (const name of element.getAttributeNames()) if (!like.hasAttribute(name)) element.removeAttribute(name);
  for (const name of like.getAttributeNames()) element.setAttribute(name, like.getAttribute(name));
}

/** Focus the control that matches the one that had the focus, or the part itself. */
export function restoreFocus(part, focused) {
  const isSame = (one) => one.className === focused.className && one.textContent === focused.textContent && !one.disabled;
  const same = [...part.querySelectorAll(focused.tagName)].find(isSame);
  if (!same) part.tabIndex = -1;
  (same ?? part).focus({ preventScroll: true });
}
