// Addresses: a proxy may serve us below a path of its own, such as /rag.

/** Return a path of ours as the browser asks for it. */
export function address(path) {
  return document.documentElement.dataset.root + path;
}
