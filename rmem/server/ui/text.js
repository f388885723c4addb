// Texts of the pages. t`${n} of ${m}` looks "{0} of {1}" up in the catalogue, texts.js; what is not translated stays English.

import {TEXTS} from "./texts.js";

export function t(strings, ...values) {
  const key = strings.reduce((told, part, at) => `${told}{${at - 1}}${part}`);
  return (TEXTS[key] || key).replace(/\{(\d+)\}/g, (_, at) => values[at]);
}
