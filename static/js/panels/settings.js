// Settings: searched while typing, and updated when their file changes.
import { address } from "../lib/address.js";
import { elementOf } from "../lib/html.js";
import { t } from "../lib/language.js";
import { restoreFocus } from "../lib/patch.js";
import { poll } from "../lib/polling.js";
import { refreshPage } from "../shell/page.js";

const interval = { seconds: 2 };

/** Make the settings interactive wherever they are shown; every page follows the settings' version. */
export function enableSettings() {
  document.addEventListener("input", (event) => {
    if (event.target.id === "settings-filter") search(event.target.value);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches(".settings .filter")) event.preventDefault();
  });
  poll(checkVersion, interval);
}

/** Show the settings that contain all the words. */
function search(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const view = document.getElementById("settings");
  view.classList.toggle("searching", words.length > 0);
  if (words.length > 0) view.querySelector("#all-settings").open = true;
  for (const one of view.querySelectorAll(".setting")) {
    const text = one.querySelector("summary").textContent.toLowerCase();
    const searchable = `${text} ${one.id.replaceAll("_", " ")}`;
    one.hidden = !words.every((word) => searchable.includes(word));
  }
  const topics = [...view.querySelectorAll(".topic")];
  for (const topic of topics) {
    topic.hidden = !topic.querySelector(".setting:not([hidden])");
    if (topic.matches("details")) topic.open = words.length > 0;
  }
  view.querySelector(".none").textContent = topics.every((topic) => topic.hidden) ? t("No settings found.") : "";
}

/** Update the banners, and the settings where they are shown, if the settings have changed. */
async function checkVersion() {
  const response = await fetch(address("/api/settings/version")).catch(() => null);
  // Signed out, here or elsewhere: the way back leads through the page to sign in.
  if (response?.status === 401) location.assign(location.pathname + location.search);
  if (!response?.ok) return;
  const { version } = await response.json();
  if (version === document.body.dataset.settingsVersion) return;
  document.body.dataset.settingsVersion = version;
  await refreshPage();
  await redraw();
}

/** Replace each setting whose value or origin has changed, with a mark. */
async function redraw() {
  const view = document.getElementById("settings");
  if (!view) return;
  const url = new URL(view.dataset.page, location.href);
  url.searchParams.set("drawer", "1");
  const response = await fetch(url).catch(() => null);
  if (!response?.ok) return;
  const drawn = elementOf(await response.text());
  for (const previous of view.querySelectorAll(".setting")) {
    const current = drawn.querySelector(`#${previous.id}`);
    if (!current || current.dataset.value === previous.dataset.value) continue;
    current.open = previous.open;
    current.hidden = previous.hidden;
    current.classList.add("new");
    current.querySelector(".changed").textContent = t("changed just now");
    previous.replaceWith(current);
  }
  // What has not changed can still be saved.
  const stamp = drawn.querySelector("[name=stamp]")?.value ?? "";
  for (const field of view.querySelectorAll(".setting [name=stamp]")) field.value = stamp;
  replaceForm(view.querySelector(".connect"), drawn.querySelector(".connect"));
  const [banner, problem] = [view.querySelector(".banner"), drawn.querySelector(".banner")];
  if (banner && problem) banner.replaceWith(problem);
  else if (banner) banner.remove();
  else if (problem) view.querySelector(".page-header").after(problem);
}

/** Replace the form, unless someone is typing in it: a test of other settings says nothing about these. */
function replaceForm(current, next) {
  const isTyped = (field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  if (!current || current.querySelector(".error") || [...current.querySelectorAll("input")].some(isTyped)) return;
  const focused = current.contains(document.activeElement) ? document.activeElement : null;
  current.replaceWith(next);
  if (focused) restoreFocus(next, focused);
}
