// Tables: what there is, a box for SQL with what was asked before, answers as a table and as CSV.

import {lines, shares} from "./chart.js";
import {count, field, h, plural, problem, replace, say, table, waiting} from "./dom.js";
import {t} from "./text.js";

export const title = t`Tables`;
const HISTORY = "rmem-sql", MOST = 50, SHOWN = 500;

export async function show({content, parameters, workspace, note, isCurrent}) {
  const {tables} = await workspace.get("tables", {limit: 1000});
  if (!isCurrent()) return;
  const box = h("textarea", {rows: 5, spellcheck: "false", value: parameters.get("sql") ??
    `SELECT * FROM ${tables.length ? quoted(tables[0].table_name) : "facts"} LIMIT 100`});
  const before = h("select", {onchange: () => { if (before.value) box.value = before.value; }});
  const result = h("section", {"aria-label": t`Answer`, "aria-live": "polite"});
  const list = h("div");
  const draw = all => replace(list, all.length ? all.map(described) : empty());
  draw(tables);
  replace(content, h("h1", null, t`Tables`), list,
    h("form", {class: "card", onsubmit: event => { event.preventDefault(); run(); }},
      field("SQL", box, t`Ctrl+Enter runs it. Whoever may only read may SELECT.`),
      h("div", {class: "row"}, h("button", {class: "main"}, t`Run`), h("button", {type: "button", onclick: csv}, "CSV"),
        field(t`Asked before`, before))), result);
  box.addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
  });
  remember();

  function described(one) {
    return h("details", {class: "card"}, h("summary", null, h("strong", null, one.table_name), " ",
      h("small", null, one.view ? t`view` : plural(one.columns.length, t`column`, t`columns`))),
    table([t`column`, t`type`, t`null`, t`default`], one.columns.map(column => [column.name, column.type,
      column.nullable ? t`yes` : t`no`, column.serial ? t`serial` : column.default ?? ""]), t`Columns of ${one.table_name}`),
    one.indexes.length > 0 && h("p", {class: "note"}, t`Indexes: `,
      one.indexes.map(index => `${index.name} (${index.columns.join(", ")})`).join("; ")),
    h("button", {onclick: () => { box.value = `SELECT * FROM ${quoted(one.table_name)} LIMIT 100`; run(); }}, t`Show rows`));
  }

  async function run() {
    note({sql: box.value.length < 2000 ? box.value : ""});
    replace(result, waiting(t`Running…`));
    const started = performance.now();
    try {
      const answer = await workspace.ask("tables/query", {method: "POST", body: {query: box.value}});
      const told = JSON.parse(await answer.text(), digits);
      remember(box.value);
      const took = `${Math.round(performance.now() - started)} ms`;
      replace(result, told.columns.length ? [
        h("p", {class: "note"}, t`${plural(told.rows.length, t`row`, t`rows`)}, ${took}.`,
          told.rows.length > SHOWN && t` The first ${count(SHOWN)} are shown; CSV has all.`),
        table(told.columns, told.rows.slice(0, SHOWN).map(row => row.map(cell)), t`Answer`), chart(told)] :
        h("p", null, t`${plural(told.row_count, t`row`, t`rows`)} written, ${took}.`));
      if (!told.columns.length) draw((await workspace.get("tables", {limit: 1000})).tables);
    } catch (error) {
      replace(result, problem(error));
    }
  }

  async function csv() {
    try {
      const answer = await workspace.ask("tables/query", {method: "POST", body: {query: box.value}, accept: "text/csv"});
      const link = h("a", {href: URL.createObjectURL(await answer.blob()), download: "rows.csv"});
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      say(t`Saved as rows.csv.`);
    } catch (error) {
      replace(result, problem(error));
    }
  }

  function remember(statement) { // in this tab alone, and until it is closed
    let known = JSON.parse(sessionStorage.getItem(HISTORY) ?? "[]");
    if (statement) known = [statement, ...known.filter(one => one !== statement)].slice(0, MOST);
    sessionStorage.setItem(HISTORY, JSON.stringify(known));
    replace(before, h("option", {value: ""}, known.length ? t`choose…` : t`nothing yet`),
      known.map(one => h("option", {value: one}, one.replace(/\s+/g, " ").slice(0, 80))));
  }
}

/** Numbers over the first column: as lines where that is a number too, else as bars; nothing without numbers. */
function chart({columns, rows}) {
  const isNumber = at => rows.length > 1 && rows.every(row => row[at] === null || typeof row[at] === "number");
  const numbers = columns.map((_, at) => at).filter(at => at > 0 && isNumber(at)).slice(0, 5);
  if (!numbers.length) return null;
  const drawn = rows.slice(0, SHOWN);
  if (!isNumber(0)) {
    return h("details", {open: true}, h("summary", null, t`Chart`), numbers.map(at => shares(columns[at], drawn.filter(row =>
      row[at] !== null).map(row => [String(row[0] ?? "NULL"), row[at]]), null, {sorted: true, shown: number => number.toLocaleString("en")})));
  }
  const values = drawn.flatMap(row => numbers.map(at => row[at] ?? 0)), xs = drawn.map(row => row[0] ?? 0);
  const label = number => Number(number.toPrecision(4)).toLocaleString("en");
  return h("details", {open: true}, h("summary", null, t`Chart`), lines(t`Chart`, numbers.map(at => ({name: columns[at],
    points: drawn.filter(row => row[0] !== null && row[at] !== null).map(row => [row[0], row[at]]).sort((one, other) => one[0] - other[0])})),
  {low: Math.min(...xs), high: Math.max(...xs), label, name: columns[0]},
  {low: Math.min(0, ...values), high: Math.max(...values), label}));
}

/** Whole numbers that a number of JavaScript would round, as their digits, where the browser passes them on. */
const digits = (_, value, context) => Number.isInteger(value) && !Number.isSafeInteger(value) ? context?.source ?? value : value;

const quoted = name => `"${name.replaceAll('"', '""')}"`;

function cell(value) {
  if (value === null) return h("span", {class: "note"}, "NULL");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function empty() {
  return h("div", null, h("p", null, t`There are no tables yet. Make one here, or in a shell:`),
    h("p", null, h("code", null, "rmem sql \"CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, body TEXT)\"")),
    h("p", {class: "note"}, t`The facts of the graph can be asked for in SQL, too: they are the table facts.`));
}
