// Everything that scripts add to the pages. Each module is one behaviour; without any of them the forms still work.
import { enableAnswers } from "./answers.js";
import { enableAsking } from "./ask.js";
import { enableChoosing } from "./choosing.js";
import { enableCommandList, enableResults } from "./commands.js";
import { enableComposer } from "./composer.js";
import { enableConversations } from "./conversations.js";
import { enableCopying } from "./copy.js";
import { enableDocuments } from "./documents.js";
import { enableDoing } from "./doing.js";
import { enableDrafts } from "./draft.js";
import { enableDrawerWidth } from "./drawer-width.js";
import { enableDrawer } from "./drawer.js";
import { enableEarlier } from "./earlier.js";
import { enableEditing } from "./edit.js";
import { keepFrameFresh, refreshPage } from "./frame.js";
import { enableGauge } from "./gauge.js";
import { enableMarks } from "./marks.js";
import { enableMenus } from "./menus.js";
import { enableNotes } from "./notes.js";
import { enablePictures } from "./pictures.js";
import { enableReceipt } from "./receipt.js";
import { enableRowMenu } from "./row-menu.js";
import { enableScope } from "./scope.js";
import { showTheEnd } from "./scroll.js";
import { enableSearch } from "./search.js";
import { enableSettings } from "./settings.js";
import { enableShortcuts } from "./shortcuts.js";
import { enableSidebar } from "./sidebar.js";
import { enableSources } from "./sources.js";
import { enableSummary } from "./summary.js";
import { keepInStep } from "./sync.js";
import { enableThemes } from "./theme.js";
import { followRunningTurns } from "./turn.js";
import { enableUploads } from "./uploads.js";
import { enableWindow } from "./window.js";

document.documentElement.classList.add("scripted");
enableThemes();
enableSidebar();
enableConversations();
enableSearch();
enableRowMenu();
enableShortcuts();
enableDrawer();
enableDrawerWidth();
enableDocuments();
enableChoosing();
enableSources();
enablePictures();
enableReceipt();
enableUploads();
enableCommandList();
enableResults();
enableComposer();
enableAsking();
enableScope();
enableMenus();
enableWindow();
enableGauge();
enableNotes();
enableSettings();
enableDoing();
enableSummary();
enableMarks();
enableAnswers();
enableEditing();
enableDrafts();
enableCopying();
keepFrameFresh();
followRunningTurns();
document.addEventListener("turns-taken", () => followRunningTurns());
showTheEnd();
enableEarlier();
keepInStep();

// The banner says that the model is being loaded; it takes that back when it is.
const starting = document.getElementById("starting");
if (starting) {
  const look = setInterval(async () => {
    const answer = await fetch("/readyz").catch(() => null);
    if (answer && (await answer.json()).parts.model !== "starting") {
      clearInterval(look);
      refreshPage();
    }
  }, 1000);
}
