// The settings: found as one types, set for the open conversation in place, and seen to change when their file does.
import { send } from "../lib/api.js";
import { elementOf } from "../lib/html.js";
import { keepLooking } from "../lib/polling.js";
import { sentenceOf } from "../lib/toast.js";
import { refreshPage } from "../shell/page.js";

const pace = { seconds: 2 };

/** Make the view of the settings live, wherever it is shown; every page follows the settings' version. */
export function enableSettings() {
  document.addEventListener("input", (event) => {
    if (event.target.id === "settings-filter") find(event.target.value);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches(".settings .filter")) event.preventDefault();
    if (!event.target.dataset.choices) return;
    event.preventDefault();
    keep(event.target);
  });
  keepLooking(follow, pace);
}

/** Show the settings that hold all the words. */
function find(sought) {
  const words = sought.toLowerCase().split(/\s+/).filter(Boolean);
  const view = document.getElementById("settings");
  for (const one of view.querySelectorAll(".setting")) {
    const text = one.querySelector("summary").textContent.toLowerCase();
    const spoken = `${text} ${one.id.replaceAll("_", " ")}`;
    one.hidden = !words.every((word) => spoken.includes(word));
  }
  const topics = [...view.querySelectorAll(".topic")];
  for (const topic of topics) topic.hidden = !topic.querySelector(".setting:not([hidden])");
  view.querySelector(".none").textContent = topics.every((topic) => topic.hidden) ? "No setting contains these words." : "";
}

/** Let the open conversation keep what the form says. */
async function keep(form) {
  const said = Object.fromEntries(new FormData(form));
  const limit = said.max_history_turns.trim().toLowerCase();
  const error = form.querySelector(".error");
  try {
    await send("PATCH", form.dataset.choices, {
      max_history_turns: limit === "" ? "default" : limit === "all" ? null : Number(limit),
      history_strategy: said.history_strategy || "default",
      on_overflow: said.on_overflow || "default",
    });
    error.hidden = true;
    form.querySelector(".said").textContent = "Set.";
    await refreshPage();
  } catch (reason) {
    error.textContent = sentenceOf(reason);
    error.hidden = false;
  }
}

/** Draw what has changed since the page was drawn: the banners, and the settings where they are shown. */
async function follow() {
  const answer = await fetch("/api/settings/version").catch(() => null);
  if (!answer?.ok) return;
  const { version } = await answer.json();
  if (version === document.body.dataset.settingsVersion) return;
  document.body.dataset.settingsVersion = version;
  await refreshPage();
  await redraw();
}

/** Put each setting whose value or origin is another one in the place of the old, with a mark. */
async function redraw() {
  const view = document.getElementById("settings");
  if (!view) return;
  const url = new URL(view.dataset.page, location.href);
  url.searchParams.set("drawer", "1");
  const answer = await fetch(url).catch(() => null);
  if (!answer?.ok) return;
  const drawn = elementOf(await answer.text());
  for (const old of view.querySelectorAll(".setting")) {
    const now = drawn.querySelector(`#${old.id}`);
    if (!now || now.dataset.value === old.dataset.value) continue;
    now.open = old.open;
    now.hidden = old.hidden;
    now.classList.add("new");
    now.querySelector(".changed").textContent = "changed just now";
    old.replaceWith(now);
  }
  view.querySelector(".connect")?.toggleAttribute("hidden", drawn.querySelector(".connect").hidden);
  const [banner, problem] = [view.querySelector(".banner"), drawn.querySelector(".banner")];
  if (banner && problem) banner.replaceWith(problem);
  else if (banner) banner.remove();
  else if (problem) view.querySelector("h1").after(problem);
}
