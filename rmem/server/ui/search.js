// Search, and why a memory was found or not: every part of its score.

import {lines} from "./chart.js";
import {add, choice, count, day, field, h, later, leftOut, marked, plural, problem, replace, say, table, told, when} from "./dom.js";
import {teach} from "./empty.js";
import {t} from "./text.js";

export const title = t`Search`;
const FILTERS = ["agent", "type", "since", "until"];
const LOOKED_THROUGH = 1000; // hits among which “why not?” looks for a memory: the most that one recall gives
const MEANING = {
  words: t`words of the question in the memory`, vectors: t`likeness of meaning`, bm25: t`words of the question in the memory`,
  cosine: t`likeness of meaning`, neighbours: t`what stands around it in its session`,
  substance: t`how much it says, its names and numbers`,
  own: t`an assistant said it, and the question speaks of the asker`, actor: t`the question names its actor`,
  quoted: t`it holds what the question quotes`, when: t`it speaks of a time`, graph: t`facts that lead to it`,
  time: t`how near it is to the time that the question names`, importance: t`its importance`,
  baseline: t`what every memory of this question has`,
};
const seen = new Map(); // memories that were shown, to pick one from

export async function show({content, parameters, workspace, address, note, isCurrent}) {
  const stats = await workspace.get("stats");
  if (!isCurrent()) return;
  if (!stats.memories) {
    teach(content, workspace);
    return;
  }
  const asked = {q: parameters.get("q") ?? "", mode: parameters.get("mode") ?? "", why: parameters.get("why") ?? ""};
  for (const name of FILTERS) asked[name] = parameters.get(name) ?? "";
  let k = 10, running = 0;

  const box = h("input", {type: "search", value: asked.q, placeholder: t`Ask as you think`, autocomplete: "off",
    "aria-describedby": "search-note"});
  const controls = {
    agent: choice(Object.keys(stats.by_agent).slice(0, 500), asked.agent, t`any agent`),
    type: choice(Object.keys(stats.by_type), asked.type, t`any type`),
    since: h("input", {type: "date", value: asked.since}),
    until: h("input", {type: "date", value: asked.until}),
    mode: choice(["lexical", "vector"], asked.mode, t`hybrid`),
  };
  const results = h("section", {"aria-label": t`Hits`, "aria-live": "polite"});
  const whyBox = h("input", {value: asked.why, list: "seen", placeholder: t`memory id`, autocomplete: "off"});
  const settingsBox = h("input", {placeholder: "dense=0.7 context=0", autocomplete: "off", spellcheck: "false"});
  const comparison = h("div", {"aria-live": "polite"});
  const embedder = choice(["static", "minilm"], "", t`as it is`);
  const evaluation = h("section", {class: "card", "aria-label": t`Evaluation`});
  const known = h("datalist", {id: "seen"});
  const whyResult = h("div", {"aria-live": "polite"});
  replace(content, h("h1", {class: "hidden"}, t`Search`),
    h("form", {role: "search", onsubmit: event => { event.preventDefault(); run(); }},
      h("div", {class: "ask"}, h("label", {class: "hidden", for: "question"}, t`Question`), box),
      h("p", {id: "search-note", class: "note"}, t`${plural(stats.memories, t`memory`, t`memories`)} in ${workspace.name}. `,
        t`Press / to come back to this box.`), leftOut(stats),
      h("details", {open: FILTERS.some(name => asked[name]) || Boolean(asked.mode)}, h("summary", null, t`Narrow down`),
        h("div", {class: "row"}, field(t`Agent`, controls.agent), field(t`Type`, controls.type),
          field(t`From`, controls.since), field(t`To`, controls.until), field(t`Ranking`, controls.mode)))),
    results,
    h("section", {class: "card", "aria-labelledby": "why-title"}, h("h2", {id: "why-title"}, t`Why not this one?`),
      h("p", {class: "note"}, t`Name a memory that should have come, and see where it ranks and what held it back.`),
      h("form", {class: "row", onsubmit: event => { event.preventDefault(); asked.why = whyBox.value.trim(); why(); }},
        field(t`Memory`, whyBox), known, h("button", null, t`Explain`)), whyResult),
    h("section", {class: "card", "aria-labelledby": "compare-title"}, h("h2", {id: "compare-title"}, t`With other settings`),
      h("p", {class: "note"}, t`Rank the same question with other knobs of recall, and see what moves. Nothing is kept.`),
      h("form", {class: "row", onsubmit: event => { event.preventDefault(); compare(); }},
        field(t`Settings`, settingsBox), field(t`Embedder`, embedder), h("button", null, t`Compare`)), comparison),
    evaluation);
  box.id = "question";

  const where = () => Object.fromEntries(FILTERS.filter(name => asked[name]).map(name => [name, asked[name]]));
  const request = more => ({query: asked.q, mode: asked.mode || "hybrid", where: where(), explain: true, touch: false,
    ...more});

  async function run() {
    const mine = (running += 1);
    asked.q = box.value.trim();
    for (const [name, control] of Object.entries(controls)) asked[name] = control.value;
    note(asked);
    if (!asked.q) {
      replace(results, await recent());
      return;
    }
    results.setAttribute("aria-busy", "true");
    try {
      const found = await workspace.send("POST", "recall", request({k}));
      if (mine !== running || !isCurrent()) return;
      draw(found);
    } catch (error) {
      if (mine === running) replace(results, problem(error));
    } finally {
      results.removeAttribute("aria-busy");
    }
  }

  async function recent() {
    const listed = await workspace.get("memories", {...where(), limit: 10});
    return [h("h2", null, t`Newest`), listed.memories.map(one => card(one, address))];
  }

  function draw(found) {
    const strongest = Math.max(1e-9, ...found.hits.flatMap(hit =>
      Object.values(hit.explanation?.components ?? {}).map(Math.abs)));
    replace(results,
      h("p", {class: "note"}, found.hits.length ? t`${plural(found.hits.length, t`hit`, t`hits`)}, best first.` : t`Nothing was found.`),
      found.hits.map(hit => hitCard(found, hit, strongest)),
      found.hits.length >= k && k < 100 && h("button", {onclick: () => { k += 20; run(); }}, t`More`));
    replace(known, [...seen].map(([id, text]) => h("option", {value: id}, text.slice(0, 80))));
  }

  function hitCard(found, hit, strongest) {
    const stems = (hit.explanation?.words ?? []).map(one => one.matched);
    const judged = h("span", {class: "row"});
    const judge = async useful => {
      await workspace.send("POST", "feedback", {recall_id: found.recall_id, memory_id: hit.memory.memory_id, useful});
      replace(judged, h("span", {class: "note"}, useful ? t`Noted: it helped.` : t`Noted: it did not help.`));
      told(evaluation, drawEvaluation());
    };
    if (workspace.mayWrite) {
      add(judged, [
        h("button", {class: "quiet", "aria-label": t`Hit ${hit.rank} helped`, onclick: () => judge(true)}, t`helped`),
        h("button", {class: "quiet", "aria-label": t`Hit ${hit.rank} did not help`, onclick: () => judge(false)},
          t`did not`)]);
    }
    return card(hit.memory, address, {
      before: [h("span", {class: "rank"}, hit.rank), relevance(hit.relevance)],
      stems, after: h("div", {class: "foot"}, hit.explanation && h("details", null,
        h("summary", null, t`Why: score ${hit.score.toFixed(2)}`), parts(hit.explanation, strongest)), judged),
    });
  }

  async function why() {
    note(asked);
    if (!asked.why) { replace(whyResult); return; }
    if (!asked.q) { replace(whyResult, h("p", null, t`Ask a question first.`)); return; }
    replace(whyResult, h("p", {class: "note"}, t`Looking…`));
    try {
      const [memory, found] = await Promise.all([
        workspace.get(workspace.memory(asked.why)),
        workspace.send("POST", "recall", request({k: LOOKED_THROUGH}))]);
      replace(whyResult, explained(memory, found, asked, k, address));
    } catch (error) {
      replace(whyResult, problem(error.status === 404 ? new Error(t`There is no memory ${asked.why}.`) : error));
    }
  }

  async function compare() {
    if (!asked.q) { replace(comparison, h("p", null, t`Ask a question first.`)); return; }
    try {
      const [before, after] = await Promise.all([workspace.send("POST", "recall", request({k: 50})), embedder.value ?
        workspace.send("POST", "ranking", {query: asked.q, where: where(), embedder: embedder.value}) :
        workspace.send("POST", "recall", request({k: 50, settings: settings()}))]);
      const known = new Map(before.hits.map(hit => [hit.memory.memory_id, hit.memory]));
      const hits = after.hits ?? after.ids.flatMap((id, at) => known.has(id) ? [{rank: at + 1, memory: known.get(id)}] : []);
      replace(comparison, after.ids && h("p", {class: "note"},
        t`By ${after.embedder}, among the first ${count(after.ids.length)} hits as they are.`), moved(before.hits, hits, k, address));
    } catch (error) {
      replace(comparison, problem(error));
    }
  }

  const settings = () => Object.fromEntries(settingsBox.value.split(/[\s,]+/).filter(Boolean).map(pair => {
    const [name, value] = pair.split("=");
    return [name, Number.isNaN(Number(value)) || value === "" ? value ?? "" : Number(value)];
  }));

  /** The questions that were judged: their figures with every run, and whether relevance means what it says. */
  async function drawEvaluation() {
    const {count: number, questions, runs} = await workspace.get("evaluation");
    if (!isCurrent()) return;
    const wrong = h("div"), last = runs.at(-1), named = ["recall@5", "ndcg@5", "mrr"];
    const percent = value => `${Math.round(100 * value)} %`, unit = {low: 0, high: 1, label: value => value.toFixed(1)};
    replace(evaluation, h("h2", null, t`Evaluation`), h("p", {class: "note"},
      t`${plural(number, t`question`, t`questions`)} in the set: each that had a hit marked as helpful. Mark hits above to add one.`),
    h("div", {class: "row"}, workspace.mayWrite && number > 0 && h("button", {onclick: async () => {
      try {
        await workspace.send("POST", "evaluation", {settings: settings()});
        say(t`Asked ${plural(number, t`question`, t`questions`)}.`);
        await drawEvaluation();
      } catch (error) {
        replace(wrong, problem(error));
      }
    }}, t`Run with these settings`), questions.length > 0 && h("a", {download: "questions.jsonl", href: URL.createObjectURL(
      new Blob([questions.map(one => `${JSON.stringify(one)}\n`).join("")]))}, t`Save the set for rmem eval`)), wrong,
    runs.length > 0 && [
      runs.length > 1 && lines(t`Figures of the runs`, named.map(name => ({name, points: runs.map((one, at) => [at, one.measures[name]])})),
        {low: 0, high: runs.length - 1, label: at => day(runs[Math.round(at)].time), name: t`runs`}, unit),
      table([t`time`, t`who`, t`settings`, t`questions`, ...named, t`relevance off by`], [...runs].reverse().slice(0, 20).map(one =>
        [when(one.time), one.who, one.settings, count(one.questions), ...named.map(name => percent(one.measures[name])),
          percent(one.reliability.error)]), t`Runs`),
      last.reliability.bins.length > 0 && h("p", {class: "note"},
        t`From left to right the relevance that was said in the last run, upwards the share that was right. On the dashed line both agree.`),
      last.reliability.bins.length > 0 && lines(t`Reliability of the last run: relevance that was said, and the share that was right`,
        [{name: t`last run`, points: last.reliability.bins.map(bin => [bin.said, bin.right])}],
        {...unit, name: t`relevance that was said`}, unit, [[0, 0], [1, 1]])]);
  }

  const typed = later(250, run);
  box.addEventListener("input", () => { k = 10; typed(); });
  for (const control of Object.values(controls)) control.addEventListener("change", run);
  box.focus();
  await run();
  if (asked.why && isCurrent()) await why();
  if (isCurrent()) await told(evaluation, drawEvaluation());
}

function relevance(value) {
  if (value === null || value === undefined) return null;
  const percent = Math.round(value * 100);
  return h("span", {class: `pill ${value >= 0.5 ? "good" : ""}`, title: t`how likely this answers the question`},
    t`${percent}% likely`);
}

/** A memory in a list. */
export function card(memory, address, {before = [], after = [], stems = []} = {}) {
  seen.set(memory.memory_id, memory.text);
  const text = h("p", {class: "text"}, marked(memory.text.length > 600 ? `${memory.text.slice(0, 600)}…` : memory.text,
    stems));
  return h("article", {class: "card"},
    h("div", {class: "row meta"}, before,
      h("a", {href: address("memory", {id: memory.memory_id})}, memory.memory_id),
      h("span", null, memory.metadata.memory_type), h("span", null, memory.agent_id),
      memory.actor && h("span", null, memory.actor),
      h("time", null, when(memory.timestamp)),
      "pinned" in memory.tags && h("span", {class: "pill"}, t`pinned`)),
    text, after);
}

/** Every part of a score as a bar, from the middle to the right where it helped and to the left where it did not. */
function parts(explanation, strongest) {
  const shown = Object.entries(explanation.components).filter(([, value]) => Math.abs(value) >= 0.005)
    .sort(([, one], [, other]) => Math.abs(other) - Math.abs(one));
  return [h("dl", {class: "parts"}, shown.map(([name, value]) => bar(name, value, strongest))),
    explanation.words.length > 0 && h("p", {class: "note"}, t`Words: `, explanation.words.map(one =>
      one.word === one.matched ? one.word : `${one.word} ~ ${one.matched}`).join(", ")),
    explanation.notes.map(one => h("p", {class: "note"}, one))];
}

function bar(name, value, strongest) {
  const line = h("span", {class: value < 0 ? "less" : "more"});
  line.style.width = `${50 * Math.min(1, Math.abs(value) / strongest)}%`;
  return [h("dt", {title: MEANING[name]}, name),
    h("dd", null, h("span", {class: "track"}, line), h("span", {class: "number"}, signed(value)))];
}

const signed = value => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

/** Where a memory ranks, and by which parts of the score the last hit that is shown is ahead of it. */
function explained(memory, found, asked, k, address) {
  const link = h("a", {href: address("memory", {id: memory.memory_id})}, memory.memory_id);
  const at = found.hits.findIndex(hit => hit.memory.memory_id === memory.memory_id);
  if (at < 0) {
    const outside = outsideOf(memory, asked);
    return [h("p", null, link, outside.length ? t` is outside the filter:` :
      t` is not among the first ${count(found.hits.length)} hits.`), outside.map(one => h("p", {class: "bad"}, one)),
      !outside.length && h("p", null, asked.mode === "lexical" ? t`None of its words are in the question.` :
        t`Neither its words nor its meaning come near the question.`)];
  }
  const hit = found.hits[at];
  if (at < k) return [h("p", null, link, t` is shown: it is hit ${hit.rank}.`)];
  const rival = found.hits[k - 1], mine = hit.explanation.components, theirs = rival.explanation.components;
  const gaps = [...new Set([...Object.keys(mine), ...Object.keys(theirs)])]
    .map(name => ({name, mine: mine[name] ?? 0, theirs: theirs[name] ?? 0}))
    .filter(one => Math.abs(one.mine - one.theirs) >= 0.005)
    .sort((one, other) => (one.mine - one.theirs) - (other.mine - other.theirs));
  const held = gaps.filter(one => one.mine < one.theirs).slice(0, 3);
  const strongest = Math.max(...gaps.map(one => Math.abs(one.mine - one.theirs)), 1e-9);
  return [
    h("p", null, link, t` ranks ${count(hit.rank)} of the first ${count(found.hits.length)}: score `,
      t`${hit.score.toFixed(2)}, and hit ${rival.rank}, the last that is shown, has ${rival.score.toFixed(2)}.`),
    held.length > 0 && h("p", null, t`Held back by `, held.map((one, number) => [number ? ", " : "",
      h("strong", null, one.name), MEANING[one.name] ? ` (${MEANING[one.name]})` : "", ` ${signed(one.mine - one.theirs)}`]),
      "."),
    h("h3", null, t`Against hit ${rival.rank}`),
    h("dl", {class: "parts"}, gaps.map(one => bar(one.name, one.mine - one.theirs, strongest))),
  ];
}

/** Two rankings side by side: for each hit that either shows, where it was and where it is. */
function moved(before, after, k, address) {
  const rank = (hits, id) => hits.find(hit => hit.memory.memory_id === id)?.rank;
  const all = new Map([...after.slice(0, k), ...before.slice(0, k)].map(hit => [hit.memory.memory_id, hit.memory]));
  return table([t`as it is`, t`with these settings`, t`moved`, t`memory`], [...all].map(([id, memory]) => {
    const now = rank(before, id), then = rank(after, id), by = now && then ? now - then : null;
    return [now ?? t`after 50`, then ?? t`after 50`,
      by === null ? "" : by > 0 ? `▲ ${by}` : by < 0 ? `▼ ${-by}` : "=",
      h("a", {href: address("memory", {id})}, memory.text.slice(0, 100))];
  }), t`Rankings side by side`);
}

/** Which fields of the filter a memory does not meet. */
function outsideOf(memory, asked) {
  const told = [];
  if (asked.agent && memory.agent_id !== asked.agent) told.push(t`its agent is ${memory.agent_id}, not ${asked.agent}`);
  if (asked.type && memory.metadata.memory_type !== asked.type) {
    told.push(t`its type is ${memory.metadata.memory_type}, not ${asked.type}`);
  }
  const date = when(memory.timestamp).slice(0, 10);
  if (asked.since && date < asked.since) told.push(t`it is of ${date}, before ${asked.since}`);
  if (asked.until && date > asked.until) told.push(t`it is of ${date}, after ${asked.until}`);
  return told;
}
