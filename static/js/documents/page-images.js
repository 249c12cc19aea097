// Page images: loading, failing, and a larger view.
import { refusalOf } from "../lib/api.js";
import { t } from "../lib/language.js";

/** Show that a page image is loading, or why it failed; then the extracted text opens. */
export function enablePageImages() {
  new MutationObserver(trackAll).observe(document.body, { childList: true, subtree: true });
  trackAll();
  document.addEventListener("load", (event) => showLoaded(event.target), true);
  document.addEventListener("error", (event) => showFailed(event.target), true);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.(".page-picture button.zoom, .page-picture.drawn:not(.cropped) img")) toggleZoom(event.target.closest("figure"), event);
  });
}

function trackAll() {
  for (const picture of document.querySelectorAll("img[data-picture]")) {
    const figure = picture.closest("figure");
    if (figure.matches(".waiting, .drawn, .broken")) continue;
    figure.classList.add("waiting");
    if (!picture.complete) continue;
    if (picture.naturalWidth) showLoaded(picture);
    else showFailed(picture);
  }
}

function showLoaded(picture) {
  if (!picture.matches?.("img[data-picture]")) return;
  const { classList } = picture.closest("figure");
  classList.remove("waiting");
  classList.add("drawn");
}

/** Ask again, to get the reason as a sentence. */
async function showFailed(picture) {
  if (!picture.matches?.("img[data-picture]")) return;
  const figure = picture.closest("figure");
  if (figure.classList.contains("broken")) return;
  figure.classList.remove("waiting");
  figure.classList.add("broken");
  const response = await fetch(picture.src, { headers: { Accept: "application/json" } }).catch(() => null);
  const error = document.createElement("p");
  error.className = "error";
  error.setAttribute("role", "alert");
  error.textContent = response && !response.ok ? (await refusalOf(response)).message : t("This page image could not be loaded.");
  figure.prepend(error);
  figure.parentElement?.querySelector(".as-text")?.setAttribute("open", "");
}

/** Show the page twice as large, or fit it to the drawer again; the point clicked stays in view. */
function toggleZoom(figure, event) {
  const [paper, image] = [figure.querySelector(".paper"), figure.querySelector("img")];
  const box = image.getBoundingClientRect();
  const [across, down] = event.target === image
    ? [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]
    : [0, 0];
  const larger = figure.classList.toggle("larger");
  const button = figure.querySelector(".zoom");
  button.setAttribute("aria-pressed", String(larger));
  button.textContent = larger ? t("Smaller") : t("Larger");
  paper.scrollTo(across * image.offsetWidth - paper.clientWidth / 2, down * image.offsetHeight - paper.clientHeight / 2);
}
