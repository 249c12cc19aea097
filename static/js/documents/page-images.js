// Pictures of pages: that one is being drawn, that it could not be, and a larger view.
import { refusalOf } from "../lib/api.js";

/** Say while a page is drawn that it is, and why if it cannot be; the text is there then. */
export function enablePictures() {
  new MutationObserver(waitForAll).observe(document.body, { childList: true, subtree: true });
  waitForAll();
  document.addEventListener("load", (event) => end(event.target), true);
  document.addEventListener("error", (event) => fail(event.target), true);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.(".page-picture .zoom, .page-picture.drawn img")) enlarge(event.target.closest("figure"), event);
  });
}

function waitForAll() {
  for (const picture of document.querySelectorAll("img[data-picture]")) {
    const figure = picture.closest("figure");
    if (figure.matches(".waiting, .drawn, .broken")) continue;
    figure.classList.add("waiting");
    if (!picture.complete) continue;
    if (picture.naturalWidth) end(picture);
    else fail(picture);
  }
}

function end(picture) {
  if (!picture.matches?.("img[data-picture]")) return;
  const { classList } = picture.closest("figure");
  classList.remove("waiting");
  classList.add("drawn");
}

/** Ask once more, to be told in words what is wrong. */
async function fail(picture) {
  if (!picture.matches?.("img[data-picture]")) return;
  const figure = picture.closest("figure");
  if (figure.classList.contains("broken")) return;
  figure.classList.remove("waiting");
  figure.classList.add("broken");
  const response = await fetch(picture.src, { headers: { Accept: "application/json" } }).catch(() => null);
  const said = document.createElement("p");
  said.className = "error";
  said.setAttribute("role", "alert");
  said.textContent = response && !response.ok ? (await refusalOf(response)).message : "The picture of this page did not arrive.";
  figure.prepend(said);
  figure.parentElement?.querySelector(".as-text")?.setAttribute("open", "");
}

/** Show the page twice as large, or as wide as the drawer again; what was pointed at stays in view. */
function enlarge(figure, event) {
  const [paper, image] = [figure.querySelector(".paper"), figure.querySelector("img")];
  const box = image.getBoundingClientRect();
  const [across, down] = event.target === image
    ? [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]
    : [0, 0];
  const larger = figure.classList.toggle("larger");
  const button = figure.querySelector(".zoom");
  button.setAttribute("aria-pressed", String(larger));
  button.textContent = larger ? "Smaller" : "Larger";
  paper.scrollTo(across * image.offsetWidth - paper.clientWidth / 2, down * image.offsetHeight - paper.clientHeight / 2);
}
