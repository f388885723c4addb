// One memory: its text and fields, versions, where it comes from and who was told, what stands around it, contradicts it or
// says the same, the facts that it says; edit, pin, restore, forget.

import {confirmed, field, h, marked, plural, problem, replace, say, table, TIERS, told, when} from "./dom.js";
import {card} from "./search.js";
import {t} from "./text.js";

export const title = t`Memory`;
const COMPARED = 1500; // words of a text up to which differences are shown
const TOLD = ["inject", "recall", "read", "list"];

export async function show({content, parameters, workspace, address, isCurrent}) {
  const id = parameters.get("id");
  if (!id) {
    location.hash = address("search");
    return;
  }
  const answer = await workspace.ask(workspace.memory(id));
  const memory = await answer.json(), tag = answer.headers.get("ETag");
  if (!isCurrent()) return;
  const again = () => show({content, parameters, workspace, address, isCurrent});
  const around = h("section", {"aria-label": t`Around it`}), facts = h("section", {"aria-label": t`Facts`});
  const past = h("section", {"aria-label": t`History`}), versions = h("section", {"aria-label": t`Versions`});
  const alike = h("section", {"aria-label": t`Duplicates and contradictions`});
  const body = h("div");
  let lost = [], same = [];
  replace(content, h("h1", null, t`Memory`), body, versions, alike, provenance(), facts, around, past);
  read();
  await Promise.all([told(facts, drawFacts()), told(past, drawPast()), told(alike, drawConnections())]);

  function provenance() {
    const body = memory.contents, sources = Array.isArray(body.sources) ? body.sources : [];
    return sources.length > 0 && h("section", {"aria-label": t`Provenance`}, h("h2", null, t`Where it comes from`),
      table([t`when`, t`who`, t`agent`, t`session`, t`branch`, t`commit`], sources.map(one => [one.when && when(one.when), one.author,
        one.agent, one.session && h("a", {href: address("coding", {view: "sessions", session: one.session})}, one.session),
        one.branch, one.commit?.slice(0, 10)].map(cell => cell ?? "")), t`Sources`),
      Array.isArray(body.files) && h("p", {class: "note"}, t`Files: `, body.files.join(", ")));
  }

  async function drawConnections() {
    const found = await workspace.get(`connections/${encodeURIComponent(id)}`);
    if (!isCurrent()) return;
    lost = found.lost;
    drawAround(found.around);
    same = found.pairs.filter(one => one.is_same);
    replace(alike, found.pairs.length > 0 && h("h2", null, t`Duplicates and contradictions`), found.pairs.map(one =>
      card(one.memory, address, {before: h("span", {class: one.is_same ? "" : "bad"}, one.why)})));
    const shown = (found.versions.length ? found.versions : [memory]).flatMap(one => one.memory_id === id
      ? [...found.earlier.map(earlier), held(one)] : [held(one)]);
    replace(versions, shown.length > 1 && [h("h2", null, t`Versions`), h("ol", {class: "replay"}, shown.map((one, at) =>
      h("li", {class: "card"}, h("div", {class: "row meta"}, one.about),
        h("p", {class: "text"}, at ? difference(shown[at - 1].text, one.text) : one.text))))]);
  }

  function held(one) {
    return {text: one.text, about: [h("a", {href: address("memory", {id: one.memory_id})}, one.memory_id),
      h("time", null, when(one.timestamp)), one.memory_id === id && h("span", {class: "pill"}, t`this one`),
      one.tags.state && h("span", {class: "pill"}, one.tags.state), workspace.mayWrite && one.tags.state === "superseded" &&
      h("button", {onclick: () => restore(one.memory_id)}, t`Restore`)]};
  }

  function earlier(one) {
    return {text: one.text, about: [h("span", {class: "pill"}, t`before an edit`), h("time", null, t`until ${when(one.until)}`),
      workspace.mayWrite && h("button", {onclick: () => change({text: one.text}, true, t`Restored.`).catch(error => say(error.message))}, t`Restore`)]};
  }

  async function change(changes, keepEarlier, done = t`Changed.`) {
    await workspace.ask(workspace.memory(id) + (keepEarlier ? "" : "?keep_earlier=false"),
      {method: "PATCH", headers: {"If-Match": tag}, body: changes});
    say(done);
    await again();
  }

  async function restore(key) {
    try {
      await workspace.send("POST", "coding/review", {action: "restore", memory_id: key});
      say(t`It holds again; the one that had taken its place no longer does.`);
      await again();
    } catch (error) {
      say(error.message);
    }
  }

  function read() {
    const pinned = "pinned" in memory.tags;
    replace(body,
      h("article", {class: "card"}, h("p", {class: "text whole"}, memory.text),
        workspace.mayWrite && h("div", {class: "row"},
          h("button", {onclick: edit}, t`Edit`),
          h("button", {"aria-pressed": String(pinned), onclick: () => pin(!pinned)}, pinned ? t`Unpin` : t`Pin`),
          h("button", {class: "danger", onclick: forget}, t`Forget…`)),
        h("p", {class: "note"}, h("a", {href: address("search", {why: id})}, t`Why is it not found?`),
          t` Ask the question there.`)),
      h("dl", {class: "fields"}, fields().map(([name, value]) => [h("dt", null, name), h("dd", null, value)])));
  }

  function fields() {
    const data = memory.metadata;
    const inner = Object.fromEntries(Object.entries(memory.contents).filter(([name]) => name !== "text" && name !== "_earlier"));
    return [
      [t`id`, h("code", null, memory.memory_id)], [t`type`, data.memory_type], [t`agent`, memory.agent_id],
      [t`time`, when(memory.timestamp)], [t`remembered`, when(data.creation_time)],
      [t`importance`, data.importance_score.toFixed(2)], [t`tier`, TIERS[memory.tier] ?? memory.tier],
      [t`recalled`, data.retrieval_count ? t`${data.retrieval_count} times, last ${when(data.last_access_time)}` : t`never`],
      memory.session && [t`session`, h("a", {href: address("timeline", {session: memory.session})}, memory.session)],
      memory.actor && [t`actor`, memory.actor], memory.place && [t`place`, memory.place], [t`step`, memory.step_number],
      memory.position && [t`position`, memory.position.join(", ")],
      Object.keys(memory.tags).length && [t`tags`, Object.entries(memory.tags).map(([key, value]) =>
        h("span", {class: "pill"}, value ? `${key}: ${value}` : key))],
      Object.keys(inner).length && [t`metadata`, h("pre", {tabindex: 0}, JSON.stringify(inner, null, 2))],
    ].filter(Boolean);
  }

  function edit() {
    const text = h("textarea", {rows: 8, required: true, value: memory.text});
    const type = h("input", {value: memory.metadata.memory_type, required: true});
    const importance = h("input", {type: "number", min: 0, max: 1, step: "any", required: true,
      value: memory.metadata.importance_score});
    const tags = h("textarea", {rows: 3, value: Object.entries(memory.tags).map(([key, value]) => `${key}=${value}`)
      .join("\n")});
    const keep = h("input", {type: "checkbox", checked: true});
    const wrong = h("div");
    replace(body, h("form", {class: "card", onsubmit: async event => {
      event.preventDefault();
      try {
        await change(changes(), keep.checked);
      } catch (error) {
        replace(wrong, problem(error));
      }
    }}, field(t`Text`, text), field(t`Type`, type), field(t`Importance`, importance, t`From 0 to 1.`),
    field(t`Tags`, tags, t`One to a line: key=value.`),
    field(t`Keep what it said before`, keep, t`Otherwise all its earlier texts are erased.`), h("div", {class: "row"}, h("button", {class: "main"}, t`Save`),
      h("button", {type: "button", onclick: read}, t`Cancel`)), wrong));
    text.focus();

    function changes() {
      const lines = tags.value.split("\n").map(line => line.trim()).filter(Boolean);
      const wanted = Object.fromEntries(lines.map(line => {
        const at = line.indexOf("=");
        return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
      }));
      const changed = {};
      if (text.value !== memory.text) changed.text = text.value;
      if (type.value !== memory.metadata.memory_type) changed.type = type.value;
      if (Number(importance.value) !== memory.metadata.importance_score) changed.importance = Number(importance.value);
      if (JSON.stringify(wanted) !== JSON.stringify(memory.tags)) changed.tags = wanted;
      return changed;
    }
  }

  async function pin(wanted) {
    await workspace.send("POST", `${workspace.memory(id)}/${wanted ? "pin" : "unpin"}`);
    say(wanted ? t`Pinned: it will not be pruned.` : t`It may fade again.`);
    await again();
  }

  async function forget() {
    const sure = await confirmed(t`Forget this memory for good?`, [memory.text.slice(0, 200),
      lost.length > 0 && t`With it go ${plural(lost.length, t`fact`, t`facts`)} that no other memory says: ${lost.slice(0, 5).join("; ")}.`,
      same.length > 0 && t`What it says stays in ${same.map(one => one.memory.memory_id).join(", ")}.`,
      t`Feedback on it goes too. It cannot be brought back.`].filter(Boolean), t`Forget`);
    if (!sure) return;
    try {
      await workspace.send("DELETE", workspace.memory(id));
      say(t`Forgotten.`);
      location.hash = address("search");
    } catch (error) {
      say(error.message);
    }
  }

  async function drawFacts() {
    const answer = await workspace.get(`graph/memories/${encodeURIComponent(id)}`);
    if (!answer.facts.length || !isCurrent()) return;
    replace(facts, h("h2", null, t`Facts that it says`), h("ul", null, answer.facts.map(fact =>
      h("li", null, fact.negated && t`not: `, h("a", {href: address("graph", {entity: fact.subject})}, fact.subject),
        ` – ${fact.relation} – `, fact.is_value ? fact.object :
          h("a", {href: address("graph", {entity: fact.object})}, fact.object),
        fact.valid_until && t` (until ${fact.valid_until.slice(0, 10)})`))));
  }

  function drawAround(near) {
    replace(around, near.length > 1 && [h("h2", null, t`In the same session`), near.map(one => one.memory_id === id ?
      h("p", {class: "here"}, marked(one.text.slice(0, 120), [])) : card(one, address))]);
  }

  async function drawPast() {
    if (!workspace.isAdmin) return;
    const {entries} = await workspace.get("audit", {memory: id, limit: 100});
    if (!entries.length || !isCurrent()) return;
    const heard = entries.filter(entry => TOLD.includes(entry.action)), done = entries.filter(entry => !TOLD.includes(entry.action));
    replace(past, done.length > 0 && [h("h2", null, t`Who did what with it`), table([t`time`, t`who`, t`action`, t`fields`],
      done.map(entry => [when(entry.time), entry.who, entry.action, (entry.detail.fields ?? []).join(", ")]), t`Who did what with it`)],
    heard.length > 0 && [h("h2", null, t`Who was shown it, and when`), table([t`time`, t`who`, t`how`, t`agent`, t`session`],
      heard.map(entry => [when(entry.time), entry.who, entry.action, entry.detail.agent ?? "", entry.detail.session ?? ""]), t`Shown`)]);
  }
}

/** A text with what is new in it marked, and what went struck through. */
function difference(before, after) {
  const [one, other] = [before, after].map(text => text.split(/(\s+)/));
  if (one.length > COMPARED || other.length > COMPARED) return after;
  const common = Array.from({length: one.length + 1}, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      common[i][j] = one[i] === other[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const shown = [];
  let i = 0, j = 0;
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) { shown.push(other[j]); i += 1; j += 1; }
    else if (j === other.length || (i < one.length && common[i + 1][j] >= common[i][j + 1])) { shown.push(h("del", null, one[i])); i += 1; }
    else { shown.push(h("ins", null, other[j])); j += 1; }
  }
  return shown;
}
