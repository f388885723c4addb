// Elements, and how values read. Texts enter the page by textContent alone.

import {t} from "./text.js";

/** How wide charts are drawn, so that their words are as large on a phone. */
export const CHART_WIDTH = Math.max(320, Math.min(960, document.documentElement.clientWidth - 40));

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

export function add(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** h("p", {class: "note"}, "text", element): an HTML element. */
export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);

/** The same in SVG. */
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export function replace(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

export const problem = error => h("p", {class: "problem", role: "alert"}, error.message);

/** How far something is. */
export const progress = (text, done, total) =>
  h("p", {class: "note"}, h("progress", {max: total, value: done, "aria-label": text}), " ", text);

/** A line for as long as something takes; after two seconds it counts them. */
export function waiting(text) {
  const line = h("p", {class: "note", role: "status"}, text), seconds = h("span", {"aria-hidden": "true"}), began = Date.now();
  line.append(" ", seconds);
  const timer = setInterval(() => {
    if (!line.isConnected) clearInterval(timer);
    else if (Date.now() - began >= 2000) seconds.textContent = t`${Math.round((Date.now() - began) / 1000)} s`;
  }, 500);
  return line;
}

/** What no answer has, because the server has no key for it. */
export const leftOut = stats => stats.unreadable > 0 && h("p", {class: "bad"},
  t`${plural(stats.unreadable, t`memory is`, t`memories are`)} encrypted and left out of every answer: the server has no master key.`);

/** Tell in a part of a page why it could not be drawn; the other parts stay. */
export const told = (part, drawing) => drawing.catch(error => replace(part, problem(error)));

export function say(text) {
  const status = document.getElementById("status");
  status.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { status.textContent = ""; }, 6000);
}

/** Tiers as people name them. */
export const TIERS = {stm: t`short-term`, im: t`intermediate`, ltm: t`long-term`};

const pad = number => String(number).padStart(2, "0");

/** Seconds since the epoch as local date and time. */
export function when(seconds) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return String(seconds);
  return `${day(seconds)} ${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

export function day(seconds) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return String(seconds);
  return `${String(date.getFullYear()).padStart(4, "0")}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

export const count = number => Number(number).toLocaleString("en");

export function bytes(number) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (number >= 1000 && at < units.length - 1) { number /= 1000; at += 1; }
  return `${at && number < 100 ? number.toFixed(1) : Math.round(number)} ${units[at]}`;
}

export const plural = (number, one, several = `${one}s`) => `${count(number)} ${number === 1 ? one : several}`;

/** A text with some words marked: those that begin as one of `stems`. */
export function marked(text, stems) {
  const known = stems.map(stem => stem.toLowerCase()).filter(Boolean);
  if (!known.length) return [text];
  return text.split(/([\p{L}\p{N}_]+)/u).map((part, at) => {
    const word = part.toLowerCase();
    return at % 2 && known.some(stem => alike(word, stem)) ? h("mark", null, part) : part;
  });
}

function alike(word, stem) {
  if (word === stem) return true;
  const root = stem.length > 4 ? stem.slice(0, -1) : stem; // "memori" for "memories" and "memory"
  return root.length > 2 && word.startsWith(root) && word.length - root.length < 5;
}

/** Wait until somebody has stopped typing. */
export function later(milliseconds, act) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), milliseconds);
  };
}

export function field(label, control, note) {
  const id = control.id || `field-${(field.count = (field.count ?? 0) + 1)}`;
  control.id = id;
  return h("div", {class: "field"}, h("label", {for: id}, label), control, note && h("small", null, note));
}

export function choice(names, chosen, nothing) {
  const options = names.map(name => h("option", {value: name, selected: name === chosen}, name));
  return h("select", null, nothing !== undefined && h("option", {value: ""}, nothing), options);
}

/** Ask before something cannot be undone; resolves to true or false. */
export function confirmed(title, told, action) {
  return new Promise(done => {
    const dialog = h("dialog", {"aria-labelledby": "dialog-title"},
      h("h2", {id: "dialog-title"}, title), told.map(one => h("p", null, one)),
      h("div", {class: "row"},
        h("button", {class: "danger", onclick: () => dialog.close("yes")}, action),
        h("button", {autofocus: true, onclick: () => dialog.close("")}, t`Cancel`)));
    dialog.addEventListener("close", () => { const yes = dialog.returnValue === "yes"; dialog.remove(); done(yes); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function table(columns, rows, caption) {
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
    h("table", null, h("caption", {class: "hidden"}, caption),
      h("thead", null, h("tr", null, columns.map(name => h("th", {scope: "col"}, name)))),
      h("tbody", null, rows.map(row => h("tr", null, row.map(cell => h("td", null, cell)))))));
}
