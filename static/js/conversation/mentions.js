// `@` in the question box: offers documents and tags, to ask only these.
import { address } from "../lib/address.js";
import { send } from "../lib/api.js";
import { t } from "../lib/language.js";
import { conversationId } from "./composer.js";
import { filterOf, redrawFilter } from "./scope.js";

const MAX_OFFERED = 6;

/** Return the word after the `@` that is being typed, null if there is none. */
export function mentionIn(box) {
  return box.value.slice(0, box.selectionStart).match(/(?:^|\s)@([^\s@]*)$/)?.[1] ?? null;
}

/** Return options for the documents and tags that hold a word. */
export async function mentionsOf(word) {
  const urls = [address(`/api/documents?limit=${MAX_OFFERED}&q=${encodeURIComponent(word)}`), address("/api/documents/tags")];
  const responses = await Promise.all(urls.map((url) => fetch(url)));
  if (!responses.every((one) => one.ok)) return [];
  const [{ documents }, { tags }] = await Promise.all(responses.map((one) => one.json()));
  const named = Object.keys(tags).filter((tag) => tag.toLowerCase().includes(word.toLowerCase()));
  const offered = [
    ...named.map((tag) => ({ name: tag, kind: t("Tag"), filter: ["tags", tag] })),
    ...documents.map((one) => ({ name: one.name, kind: t("Document"), filter: ["document_ids", one.document_id] })),
  ];
  return offered.slice(0, MAX_OFFERED).map(optionOf);
}

function optionOf({ name, kind, filter }, index) {
  const option = document.createElement("li");
  option.id = `mention-${index}`;
  option.setAttribute("role", "option");
  option.dataset.mention = JSON.stringify(filter);
  for (const [tag, text] of [["bdi", name], ["span", kind]]) {
    const part = document.createElement(tag);
    part.textContent = text;
    option.append(part);
  }
  return option;
}

/** Ask only what an option stands for, beside what was chosen of its kind before, and take the word out of the box. */
export async function mention(option, box) {
  const end = box.selectionStart;
  box.setRangeText("", end - mentionIn(box).length - 1, end, "end");
  const [kind, value] = JSON.parse(option.dataset.mention);
  const chosen = [...new Set([...filterOf(kind), value])];
  const filter = { document_ids: null, tags: null, library_ids: null, [kind]: chosen };
  if (conversationId() !== null) await send("PATCH", address(`/api/conversations/${conversationId()}`), filter);
  else {
    const url = new URL(location.href);
    for (const name of ["documents", "tag"]) url.searchParams.delete(name);
    for (const one of chosen) url.searchParams.append(kind === "tags" ? "tag" : "documents", one);
    history.replaceState(null, "", url);
  }
  await redrawFilter();
  box.focus();
}
