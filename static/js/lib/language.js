// What scripts say, in the language of the page: texts, numbers and dates.
import { texts } from "./texts.js";

const language = document.documentElement.lang;
const plurals = new Intl.PluralRules(language);

/** Return a text in the language of the page, with the values in their places: t("Page {n}", { n: 3 }). */
export function t(text, values = {}) {
  return filled(texts[text] ?? text, values);
}

/** Return the form of a text that suits the number `n`, which stands in it as {n}. */
export function tn(one, many, n, values = {}) {
  const forms = texts[one] ?? { one, other: many };
  return filled(forms[plurals.select(n)] ?? forms.other, { n: number(n), ...values });
}

/** Return a number as the language of the page writes it. */
export function number(value) {
  return value.toLocaleString(language);
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}
