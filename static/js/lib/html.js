// The one place where HTML enters the page. It takes only what our own server has drawn and sanitised. The one script
// that is named by its address is the service worker, whatever else somebody should ask for.
import { address } from "./address.js";

const rules = { createHTML: (html) => html, createScriptURL: () => address("/sw.js") };
const policy = window.trustedTypes ? window.trustedTypes.createPolicy("app", rules) : rules;

/** Return the address of the service worker as one that may run. */
export function serviceWorkerAddress() {
  return policy.createScriptURL("");
}

/** Replace the content of an element with HTML from our server. */
export function setHtml(element, html) {
  element.innerHTML = policy.createHTML(html);
}

/** Keep the first `keep` children of an element, and replace all others with HTML from our server. */
export function setHtmlAfter(element, keep, html) {
  const holder = document.createElement("template");
  setHtml(holder, html);
  replaceAfter(element, keep, holder.content);
}

/** Keep the first `keep` children of an element, and replace everything after them with the content of another node. */
export function replaceAfter(element, keep, node) {
  const last = keep ? element.children[keep - 1] : null;
  while (last ? last.nextSibling : element.firstChild) (last ? last.nextSibling : element.firstChild).remove();
  element.append(...node.childNodes);
}

/** Return the first element of a piece of HTML from our server. */
export function elementOf(html) {
  const holder = document.createElement("template");
  setHtml(holder, html);
  return holder.content.firstElementChild;
}

/** Return a whole page from our server, to take parts from; nothing in it runs. */
export function documentOf(html) {
  return new DOMParser().parseFromString(policy.createHTML(html), "text/html");
}
