// Edit a question in place; saving asks it in a new branch and opens that.
import { refusalOf } from "../lib/api.js";
import { elementOf } from "../lib/html.js";
import { showError, showErrorIn } from "../lib/toast.js";
import { goToTurn } from "./navigation.js";
import { newKey, sendQuestion } from "./request.js";

/** Let the pencil beside a question open the form in place. */
export function enableEditing() {
  document.addEventListener("click", (event) => {
    const modified = event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0;
    const pencil = event.target.closest("a[data-edit]");
    const cancel = event.target.closest("a[data-cancel-edit]");
    if (modified || !(pencil || cancel?.closest(".edit-question").previousElementSibling?.matches(".asked"))) return;
    event.preventDefault();
    if (pencil) open(pencil).catch(showError);
    else close(cancel.closest(".edit-question"));
  });
  document.addEventListener("submit", (event) => {
    if (!("edits" in event.target.dataset)) return;
    event.preventDefault();
    save(event.target);
  });
  document.addEventListener(
    "keydown",
    (event) => {
      const form = event.target.closest?.(".edit-question");
      if (!form) return;
      if (event.key === "Escape" && !event.isComposing) {
        event.stopImmediatePropagation();
        form.querySelector("[data-cancel-edit]").click();
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches("textarea")) {
        event.preventDefault();
        form.requestSubmit();
      }
    },
    true,
  );
}

async function open(pencil) {
  const response = await fetch(pencil.dataset.edit, { headers: { Accept: "application/json" } });
  if (!response.ok) throw await refusalOf(response);
  const form = elementOf(await response.text()).querySelector(".edit-question");
  const asked = pencil.closest(".asked");
  asked.hidden = true;
  asked.after(form);
  form.dataset.key = newKey();
  const box = form.querySelector("textarea");
  box.focus();
  box.setSelectionRange(box.value.length, box.value.length);
}

function close(form) {
  const asked = form.previousElementSibling;
  form.remove();
  asked.hidden = false;
  asked.querySelector("[data-edit]").focus();
}

async function save(form) {
  const fields = new FormData(form);
  const button = form.querySelector("button[type=submit]");
  if (button.disabled || !fields.get("question").trim()) return;
  button.disabled = true;
  form.dataset.key ??= newKey();
  const [ids, libraries] = ["document_ids", "library_ids"].map((name) => fields.getAll(name).map(Number));
  const tags = fields.getAll("tags");
  const days = [...fields].filter(([name]) => name === "after" || name === "before");
  const body = {
    question: fields.get("question"),
    edits_turn: Number(fields.get("edits_turn")),
    ...(ids.length ? { document_ids: ids } : {}),
    ...(libraries.length ? { library_ids: libraries } : {}),
    ...(tags.length ? { tags } : {}),
    ...Object.fromEntries(days),
  };
  try {
    await goToTurn(await sendQuestion(body, form.dataset.key));
  } catch (reason) {
    showErrorIn(form, reason);
    button.disabled = false;
  }
}
