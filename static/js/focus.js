// Focus that stays where it is when a part of the page is drawn anew.

/** Put `made` in the place of `known`; whoever was in it is at the same control again, or at the new part itself. */
export function replaceKeepingFocus(known, made) {
  const held = known.contains(document.activeElement) ? document.activeElement : null;
  known.replaceWith(made);
  if (!held) return;
  const isSame = (one) => one.className === held.className && one.textContent === held.textContent && !one.disabled;
  const same = [...made.querySelectorAll(held.tagName)].find(isSame);
  if (!same) made.tabIndex = -1;
  (same ?? made).focus({ preventScroll: true });
}
