// The service worker: shows a page of ours where the server cannot be reached. It keeps that page and its sheet alone.
const CACHE = "offline";
const PAGE = new URL("offline", self.location).href;

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.add(PAGE)));
});

self.addEventListener("fetch", (event) => {
  if (event.request.mode !== "navigate") return;
  event.respondWith(fetch(event.request).catch(() => caches.match(PAGE)));
});
