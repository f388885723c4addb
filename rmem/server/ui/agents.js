// Agents and tiers: what each agent holds where, what moves and what fades, and how well recall does in use.

import {byTier, lines, shares} from "./chart.js";
import {TIERS, bytes, confirmed, count, day, field, h, later, plural, problem, progress, replace, say, table, told, waiting, when} from "./dom.js";
import {teach} from "./empty.js";
import {t} from "./text.js";

export const title = t`Agents`;
const POLICY = {below: [0.05, t`Retention below`], max_count: ["", t`Memories at most`], max_bytes: ["", t`Bytes at most`],
  stability: [7, t`Stability, days`], importance_weight: [4, t`Weight of importance`], growth: [1.6, t`Growth by recalls`],
  min_age_days: [1, t`Youngest, days`], grace_days: [30, t`Grace, days`]};
const DAYS = 90, LISTED = 100, LARGE = 100_000;

export async function show({content, parameters, workspace, address, isCurrent}) {
  const {agents} = await workspace.get("agents");
  if (!isCurrent()) return;
  const names = Object.keys(agents).sort((one, other) => agents[other] - agents[one]);
  if (!names.length) { teach(content, workspace); return; }
  const chosen = parameters.get("agent") ?? names[0];
  const one = h("section", {"aria-label": t`One agent`}), fades = h("section", {"aria-label": t`Fading`});
  const quality = h("section", {"aria-label": t`Retrieval in use`});
  const box = h("input", {list: "agents", value: chosen ?? "", autocomplete: "off"});
  replace(content, h("h1", null, t`Agents and tiers`),
    h("form", {class: "row", onsubmit: event => { event.preventDefault(); location.hash = address("agents", {agent: box.value}); }},
      field(t`Agent`, box, plural(names.length, t`agent`, t`agents`)),
      h("datalist", {id: "agents"}, names.slice(0, 500).map(name => h("option", {value: name}))), h("button", null, t`Show`)),
    shares(t`Memories by agent`, agents, name => address("agents", {agent: name})), one, fades, quality);
  await Promise.all([told(one, drawAgent()), told(fades, drawFading()), told(quality, drawQuality())]);

  async function drawAgent() {
    const path = `agents/${encodeURIComponent(chosen)}`;
    const [stats, moves] = await Promise.all([workspace.get(`${path}/statistics`),
      workspace.mayWrite ? workspace.send("POST", "maintenance", {agent: chosen, dry_run: true}) : null]);
    if (!isCurrent()) return;
    const packed = stats.compression, cache = stats.cache;
    replace(one, h("h2", null, chosen), h("dl", {class: "figures"}, [
      [t`memories`, count(stats.total_memories)], [t`average importance`, stats.average_importance?.toFixed(2) ?? "–"],
      stats.last_step > 0 && [t`steps`, `${count(stats.first_step)} – ${count(stats.last_step)}`],
      stats.newest !== null && [t`from, to`, `${day(stats.oldest)} – ${day(stats.newest)}`],
      [t`compressed`, packed.bytes_before ? t`${bytes(packed.bytes_before)} in ${bytes(packed.bytes_after)}` : t`nothing yet`],
      [t`compression`, `${packed.ratio.toFixed(1)}×`],
      [t`cache hits`, cache.hits + cache.misses ? `${Math.round(100 * cache.hit_ratio)} %` : t`no recalls yet`],
      ...Object.entries(stats.hot_tiers).map(([tier, state]) => [t`${TIERS[tier]} in Redis`, state]),
      stats.state_failures > 0 && [t`failures of get_state`, count(stats.state_failures)],
    ].filter(Boolean).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))),
    h("div", {class: "columns"},
      byTier(stats.tier_distribution),
      shares(t`By type`, stats.memory_type_distribution, name => address("timeline", {agent: chosen, type: name})),
      shares(t`By importance`, Object.fromEntries(Object.entries(stats.importance_histogram).filter(([, n]) => n > 0)), null, {sorted: true})),
    moves && h("p", null, t`Now ${count(moves.stm_to_im)} would move from short-term to intermediate, and ${count(moves.im_to_ltm)} on to long-term memory. `,
      moves.stm_to_im + moves.im_to_ltm > 0 && h("button", {onclick: async () => {
        const done = await workspace.send("POST", "maintenance", {agent: chosen});
        say(t`${count(done.stm_to_im)} moved to intermediate, ${count(done.im_to_ltm)} on to long-term memory.`);
        await drawAgent();
      }}, t`Move them`)));
  }

  async function drawFading() {
    const controls = Object.fromEntries(Object.entries(POLICY).map(([name, [value]]) =>
      [name, h("input", {type: "number", min: 0, step: "any", value: parameters.get(name) ?? value})]));
    const policy = () => Object.fromEntries(Object.entries(controls).filter(([, control]) => control.value !== "")
      .map(([name, control]) => [name, Number(control.value)]));
    const curve = h("div", {class: "chart"}), next = h("div"), tried = h("div", {"aria-live": "polite"});
    replace(fades, h("h2", null, t`What fades, and what falls next`),
      h("p", {class: "note"}, t`Of all agents. Nothing fades away by itself: a policy is tried here, and applied only when you say so.`),
      h("form", {class: "row", onsubmit: event => { event.preventDefault(); run(); }}, Object.entries(controls).map(([name, control]) =>
        field(POLICY[name][1], control)), workspace.mayWrite && h("button", null, t`Dry run`)), tried, curve, next);
    const isLarge = Object.values(agents).reduce((sum, number) => sum + number, 0) > LARGE;
    for (const control of Object.values(controls)) control.addEventListener("input", later(400, () => told(next, draw())));
    await draw();

    async function draw() {
      drawCurve();
      if (isLarge) { // every memory is looked at, which takes its time
        replace(next, h("button", {onclick: () => told(next, drawNext())}, t`Show how well memories are retained, and which fall next`));
        return;
      }
      await drawNext();
    }

    function drawCurve() {
      const rule = policy();
      const importances = [0, 0.5, 1], xs = [...Array(46).keys()].map(n => n * DAYS / 45);
      const stable = weight => (rule.stability ?? 7) * (1 + (rule.importance_weight ?? 4) * weight);
      replace(curve, lines(t`Forgetting curve: retention by days since a memory was last used`, importances.map(weight =>
        ({name: t`importance ${weight}`, points: xs.map(x => [x, Math.exp(-x / stable(weight))])})),
      {low: 0, high: DAYS, label: x => String(Math.round(x)), name: t`days since last used`},
      {low: 0, high: 1, label: y => y.toFixed(1)}, rule.below !== undefined && [[0, rule.below], [DAYS, rule.below]]));
    }

    async function drawNext() {
      replace(next, waiting(t`Looking at all memories…`));
      const found = await workspace.send("POST", "retention", {policy: policy(), limit: LISTED});
      if (!isCurrent()) return;
      replace(next, shares(t`Memories by retention`, Object.fromEntries(found.bins.map((n, at) => [`${at / 10} – ${(at + 1) / 10}`, n])),
        null, {sorted: true}),
      found.next.length > 0 && table([t`retention`, t`falls`, t`memory`], found.next.map(one => [one.retention.toFixed(3),
        one.falls === null ? t`never` : when(one.falls), h("a", {href: address("memory", {id: one.memory.memory_id})},
          one.memory.text.slice(0, 120))]), t`What falls next`));
    }

    async function run() {
      try {
        replace(tried, waiting(t`Trying the policy on all memories…`));
        let answer;
        for await (const line of workspace.lines("maintenance", {method: "POST", body: {prune: policy(), dry_run: true, limit: LISTED}})) {
          answer = line;
          if (line.total) replace(tried, progress(t`Trying the policy on all memories…`, line.done, line.total));
        }
        const {pruned, pruned_count: number} = answer;
        replace(tried, h("p", null, t`${plural(number, t`memory`, t`memories`)} would be pruned; nothing was removed. `,
          number > 0 && h("button", {class: "danger", onclick: () => apply(number)}, t`Apply…`)),
        pruned.length > 0 && table([t`memory`, t`retention`], pruned.map(one =>
          [h("a", {href: address("memory", {id: one.memory_id})}, one.memory_id), one.retention.toFixed(3)]), t`Would be pruned`));
      } catch (error) {
        replace(tried, problem(error));
      }
    }

    async function apply(number) {
      const days = policy().grace_days ?? 30;
      if (!await confirmed(t`Prune ${plural(number, t`memory`, t`memories`)}?`, [days ? t`They can be restored for ${days} days.` :
        t`They cannot be brought back.`], t`Prune`)) return;
      try {
        const done = await workspace.send("POST", "maintenance", {prune: policy(), limit: 0});
        replace(tried, h("p", null, t`${plural(done.pruned_count, t`memory`, t`memories`)} pruned. `, h("a", {href: address("health")}, t`Restore`)));
        await draw();
      } catch (error) {
        replace(tried, problem(error));
      }
    }
  }

  async function drawQuality() {
    const found = await workspace.get("quality", {by: "week"});
    if (!isCurrent()) return;
    const percent = value => value === null ? "–" : `${Math.round(100 * value)} %`;
    const figures = ["success_rate", "hit_ratio", "mrr"], names = {success_rate: t`success`, hit_ratio: t`hit ratio`, mrr: "MRR"};
    const groups = [{agent: t`all`, type: "", drift: found.drift, ...found.overall}, ...found.groups];
    const worse = groups.filter(one => one.drift?.direction === "worse");
    const windows = found.windows.map((one, at) => [at, one]);
    replace(quality, h("h2", null, t`Retrieval in use`), found.overall.recalls === 0 ?
      h("p", {class: "note"}, t`No recall was judged yet: say of hits on the search page whether they helped.`) : [
      worse.map(one => h("p", {class: "problem", role: "alert"},
        t`Recall got worse for ${[one.agent, one.type].filter(Boolean).join(", ")}: success ${percent(one.drift.measures.success_rate.change)} since ${one.drift.before} (p ${one.drift.measures.success_rate.p.toFixed(3)}).`)),
      windows.length > 1 && lines(t`Figures by week`, figures.map(name => ({name: names[name],
        points: windows.filter(([, one]) => one[name] !== null).map(([at, one]) => [at, one[name]])})),
      {low: 0, high: windows.length - 1, label: at => found.windows[Math.round(at)]?.from ?? "", name: t`week from`},
      {low: 0, high: 1, label: y => y.toFixed(1)}),
      table([t`agent`, t`type`, t`recalls`, ...figures.map(name => names[name]), t`drift`], groups.map(one => [one.agent, one.type,
        count(one.recalls), ...figures.map(name => percent(one[name])), one.drift ? one.drift.direction : "–"]), t`By agent`)]);
  }
}
