// Coding agents: what they would be told now and what it costs, what they did in a session, errors and their fixes, and
// the review inbox.

import {confirmed, count, field, h, plural, problem, replace, say, table, told, waiting, when} from "./dom.js";
import {card} from "./search.js";
import {t} from "./text.js";

export const title = t`Coding agents`;
const VIEWS = {told: [t`Shown now`, drawTold], inbox: [t`Review inbox`, drawInbox], sessions: [t`Sessions`, drawSessions],
  fixes: [t`Errors and fixes`, drawFixes]};

export async function show(page) {
  const {content, parameters, workspace, address, isCurrent} = page;
  const {repositories, here} = await workspace.get("coding/repositories");
  if (!isCurrent()) return;
  const known = repositories.map(one => one.id);
  const chosen = parameters.get("repository") ?? (known.includes(here) ? here : known[0]) ?? "";
  const view = parameters.get("view") in VIEWS ? parameters.get("view") : "told";
  const box = h("input", {class: "long", value: chosen, list: "repositories", autocomplete: "off", spellcheck: "false"});
  const part = h("div");
  replace(content, h("h1", null, title),
    h("form", {class: "row", onsubmit: event => {
      event.preventDefault();
      location.hash = address("coding", {repository: box.value.trim(), view});
    }}, field(t`Repository`, box, t`For example github.com/acme/etl.`),
    h("datalist", {id: "repositories"}, repositories.map(one => h("option", {value: one.id}))),
    h("button", null, t`Show`)),
    h("nav", {class: "tabs", "aria-label": t`Views`}, Object.entries(VIEWS).map(([name, [label]]) =>
      h("a", {href: address("coding", {repository: chosen, view: name}), "aria-current": name === view && "page"}, label))),
    part);
  await told(part, VIEWS[view][1](part, chosen, page));
}

async function drawTold(part, repository, {workspace, address, isCurrent}) {
  const [briefing, ledger] = await Promise.all([workspace.get("coding/briefing", {repository}),
    workspace.get("coding/ledger", {repository})]);
  if (!isCurrent()) return;
  const prompt = h("textarea", {rows: 3}), command = h("input", {spellcheck: "false"});
  const output = h("textarea", {rows: 3, spellcheck: "false"});
  const result = h("div", {"aria-live": "polite"});
  replace(part, h("h2", null, t`At the start of a session`), injection(briefing, address),
    h("h2", null, t`For a prompt, or a command that fails`),
    h("form", {class: "card", onsubmit: async event => {
      event.preventDefault();
      try {
        const found = await workspace.send("POST", "coding/injection", prompt.value.trim() ?
          {repository: repository || null, prompt: prompt.value} :
          {repository: repository || null, command: command.value, output: output.value});
        replace(result, injection(found, address), considered(found, address));
      } catch (error) {
        replace(result, problem(error));
      }
    }}, field(t`Prompt`, prompt), h("details", null, h("summary", null, t`Or a command that fails`), field(t`Command`, command),
      field(t`Its output`, output)), h("button", {class: "main"}, t`What would be shown?`), result),
    h("h2", null, t`Token ledger`), h("p", {class: "note"},
      t`In the last ${ledger.days} days about ${count(ledger.tokens)} tokens were shown in ${plural(ledger.sessions.length, t`session`, t`sessions`)}.`),
    ledger.sessions.length > 0 && table([t`last shown`, t`agent`, t`session`, t`who`, t`memories`, t`tokens`],
      ledger.sessions.map(one => [when(one.time), one.agent, h("a", {href: address("coding",
        {repository, view: "sessions", session: one.session})}, one.session), one.who, count(one.memories),
      count(one.tokens)]), t`Token ledger`));
}

/** What would be told: every line with its tokens, and those that the budget has no room for. */
function injection(found, address) {
  if (!found.sections.length) return h("p", null, t`Nothing would be shown.`);
  return [h("p", {class: "note"}, t`About ${count(found.tokens)} tokens; ${count(found.characters)} of ${count(found.budget)} characters.`),
    h("div", {class: "card"}, found.sections.map(one => [one.title && h("h3", null, one.title),
      h("ul", {class: "told"}, one.lines.map(line => h("li", {class: !line.told && "left"},
        h("span", {class: "text"}, line.text.replace(/^- /, "")), " ", h("small", null, plural(line.tokens, t`token`, t`tokens`)),
        !line.told && h("small", null, t` – no room for it`),
        line.memory_id && [" ", h("a", {href: address("memory", {id: line.memory_id})}, t`open`)])))]))];
}

const considered = (found, address) => [h("h3", null, t`Considered`), found.considered.length ?
  found.considered.map(one => card(one.memory, address, {before: [h("span", {class: `pill ${one.told ? "good" : ""}`},
    one.told ? t`shown` : t`not shown`), h("span", null, t`relevance ${one.relevance.toFixed(2)}, from ${found.bar} on it is shown`),
  one.stale && h("span", {class: "bad"}, one.stale)]})) : h("p", {class: "note"}, t`Nothing: it does not read like work, or nothing is near it.`)];

// The inbox: every item has actions, each with a key.

async function drawInbox(part, repository, {workspace, address, isCurrent}) {
  replace(part, waiting(t`Comparing what is remembered…`));
  let found = await workspace.get("coding/review", {repository}), compared = found.compared;
  if (!isCurrent()) return;
  const decide = (action, memory_id, more = {}) => workspace.send("POST", "coding/review", {action, memory_id, ...more});
  const forget = async memory => await confirmed(t`Forget this memory for good?`, [memory.text.slice(0, 200)], t`Forget`) &&
    (await workspace.send("DELETE", workspace.memory(memory.memory_id)), t`Forgotten.`);
  const pair = one => {
    const older = one.older.memory_id, newer = one.newer.memory_id;
    return {why: one.why, memories: [one.older, one.newer], actions: [
      ["n", t`The newer holds`, () => decide("supersede", older, {other: newer})],
      ["o", t`The older holds`, () => decide("supersede", newer, {other: older})],
      ["x", t`Leave both`, () => decide("dismiss", older, {other: newer, why: one.why})]]};
  };
  const listed = () => [
    ...found.contradictions.map(one => ({kind: t`Contradiction`, ...pair(one)})),
    ...found.waiting.map(one => ({kind: t`A rule?`, why: t`You said it; it is shown to nobody yet.`, memories: [one], actions: [
      ["a", t`Accept as a rule`, () => decide("accept", one.memory_id)], ["f", t`Forget`, () => forget(one)]]})),
    ...found.out_of_date.map(one => ({kind: t`May be out of date`, why: one.why, memories: [one.memory], actions: [
      ["x", t`It still holds`, () => decide("dismiss", one.memory.memory_id, {why: one.why})],
      ["f", t`Forget`, () => forget(one.memory)]]})),
    ...found.duplicates.map(one => ({kind: t`Duplicate`, ...pair(one)})),
  ];
  let items = listed();
  let at = 0;
  const list = h("div"), left = h("p", {class: "note", "aria-live": "polite"});
  const further = h("button", {onclick: goOn}, t`Compare earlier ones`);
  replace(part, left, items.length > 0 && h("p", {class: "note"}, t`j and k go down and up; each action has its key.`), list, further);
  draw();
  addEventListener("keydown", pressed);

  function draw() {
    further.hidden = !found.next_cursor;
    left.textContent = `${items.length ? t`${plural(items.length, t`thing`, t`things`)} to look at.` :
      t`Nothing contradicts, nothing is doubled or out of date, and no rule waits.`} ${found.next_cursor && compared ?
      t`The newest ${count(compared)} that people and agents wrote were compared.` : ""}`;
    at = Math.max(0, Math.min(at, items.length - 1));
    replace(list, items.map((item, number) => h("section", {class: "item", tabindex: -1, "aria-current": number === at && "true",
      "aria-label": item.kind, onfocusin: () => choose(number, false)}, h("h3", null, item.kind, " ", h("small", null, item.why)),
    item.memories.map(one => card(one, address)),
    workspace.mayWrite && h("div", {class: "row"}, item.actions.map(([key, label, act]) =>
      h("button", {onclick: () => run(item, act)}, label, " ", h("kbd", null, key)))))));
  }

  async function goOn() { // the same pair is found from both of its sides
    further.disabled = true;
    try {
      found = await workspace.get("coding/review", {repository, cursor: found.next_cursor});
      compared += found.compared;
      const key = item => item.memories.map(one => one.memory_id).join(" "), known = new Set(items.map(key));
      items.push(...listed().filter(item => !known.has(key(item))));
      if (isCurrent()) draw();
    } catch (error) {
      say(error.message);
    }
    further.disabled = false;
  }

  function choose(number, focus) {
    if (number < 0 || number >= items.length) return;
    list.children[at]?.removeAttribute("aria-current");
    at = number;
    list.children[at].setAttribute("aria-current", "true");
    if (focus) list.children[at].focus();
  }

  async function run(item, act) {
    try {
      const done = await act();
      if (!done) return;
      say(typeof done === "string" ? done : t`Done.`);
      items = items.filter(one => one !== item);
      draw();
      list.children[at]?.focus();
    } catch (error) {
      say(error.message);
    }
  }

  function pressed(event) {
    if (!list.isConnected) { removeEventListener("keydown", pressed); return; }
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey ||
      document.querySelector("dialog[open]")) return;
    if (event.key === "j" || event.key === "k") choose(at + (event.key === "j" ? 1 : -1), true);
    const action = workspace.mayWrite && items[at]?.actions.find(([key]) => key === event.key);
    if (action) run(items[at], action[2]);
  }
}

async function drawSessions(part, repository, {parameters, workspace, address, isCurrent}) {
  const session = parameters.get("session");
  if (session) return drawReplay(part, repository, session, {workspace, address, isCurrent});
  const {sessions, total} = await workspace.get("sessions", {place: repository && `repo:${repository}`, limit: 100});
  if (!isCurrent()) return;
  replace(part, h("p", {class: "note"}, total ? plural(total, t`session`, t`sessions`) :
    t`No session has remembered anything of this repository yet. Agents that rmem install connects do so.`), sessions.length > 0 && table(
    [t`from`, t`to`, t`agent`, t`session`, t`memories`], sessions.map(one => [when(one.start), when(one.end), one.agent,
      h("a", {href: address("coding", {repository, view: "sessions", session: one.session})}, one.session),
      count(one.memories)]), t`Sessions`));
}

/** The events of a session one after the other; the slider goes back and forth. */
async function drawReplay(part, repository, session, {workspace, address, isCurrent}) {
  const found = await workspace.get("coding/replay", {session});
  if (!isCurrent()) return;
  const list = h("ol", {class: "replay"}), at = h("output");
  const slider = h("input", {type: "range", min: 0, max: found.events.length, value: found.events.length});
  slider.addEventListener("input", draw);
  replace(part, h("p", null, h("a", {href: address("coding", {repository, view: "sessions"})}, t`All sessions`)),
    h("h2", null, t`Session ${session}`), found.task && h("p", {class: "text"}, h("strong", null, t`Task: `), found.task),
    found.plan.length > 0 && h("ul", null, found.plan.map(one => h("li", null, one))),
    found.prompts.length > 0 && h("details", null, h("summary", null, t`Prompts`), h("ol", null,
      found.prompts.map(one => h("li", {class: "text"}, one)))),
    h("div", {class: "row wide"}, field(t`Up to`, slider, t`Replay: drag, or use the arrow keys.`), at), list);
  draw();

  function draw() {
    const shown = found.events.slice(0, Number(slider.value));
    at.textContent = t`${count(shown.length)} of ${count(found.events.length)}`;
    replace(list, shown.map(one => h("li", {class: "card"}, h("div", {class: "row meta"}, h("time", null, when(one.time)),
      h("span", {class: "pill"}, one.kind), one.memory_id && h("a", {href: address("memory", {id: one.memory_id})}, one.memory_id)),
    h("p", {class: "text"}, one.text.slice(0, 600)))));
  }
}

async function drawFixes(part, repository, {workspace, address, isCurrent}) {
  const {memories, total} = await workspace.get("memories", {type: "error_fix", place: repository && `repo:${repository}`, limit: 100});
  if (!isCurrent()) return;
  replace(part, h("p", {class: "note"}, t`${plural(total, t`error`, t`errors`)} with what fixed them, the newest first.`),
    memories.map(one => h("article", {class: "card"}, h("div", {class: "row meta"},
      h("a", {href: address("memory", {id: one.memory_id})}, one.memory_id), one.actor && h("span", null, one.actor),
      h("time", null, when(one.timestamp)), one.contents.count > 1 && h("span", {class: "pill"}, t`seen ${one.contents.count} times`)),
    one.contents.command && h("p", null, h("code", null, one.contents.command)),
    h("div", {class: "columns"}, h("div", null, h("h3", {class: "bad"}, t`Error`), h("pre", {tabindex: 0}, one.contents.error ?? one.text)),
      h("div", null, h("h3", null, t`Fix`), h("pre", {tabindex: 0}, one.contents.fix ?? t`as the text says`))))));
}
