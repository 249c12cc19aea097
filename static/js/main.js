// Everything that scripts add to the pages. Each module is one behaviour; without any of them the forms still work.
import { enableAsking } from "./ask.js";
import { enableDrawer } from "./drawer.js";
import { enableDocuments } from "./documents.js";
import { keepFrameFresh, refreshFrame } from "./frame.js";
import { followRunningTurns, showTheEnd } from "./turn.js";

document.documentElement.classList.add("scripted");
enableDrawer();
enableDocuments();
enableAsking();
keepFrameFresh();
followRunningTurns();
showTheEnd();

const menu = document.querySelector("[data-toggle=sidebar]");
menu.addEventListener("click", () => {
  const open = document.getElementById("sidebar").classList.toggle("open");
  menu.setAttribute("aria-expanded", String(open));
});

// The banner says that the model is being loaded; it takes that back when it is.
const starting = document.getElementById("starting");
if (starting) {
  const look = setInterval(async () => {
    const answer = await fetch("/readyz").catch(() => null);
    if (answer && (await answer.json()).parts.model !== "starting") {
      clearInterval(look);
      refreshFrame();
    }
  }, 1000);
}
