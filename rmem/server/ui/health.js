// The state of the store: what it holds, what can be restored, and who did what.

import {get} from "./api.js";
import {bytes, count, day, h, plural, progress, replace, say, table, told, waiting, when} from "./dom.js";
import {byTier, lines, shares} from "./chart.js";
import {t} from "./text.js";

export const title = t`Health`;

export async function show({content, workspace, address, isCurrent}) {
  const stats = await workspace.get("stats");
  if (!isCurrent()) return;
  const members = h("section", {"aria-label": t`Members and tokens`});
  const growth = h("section", {"aria-label": t`Growth`}), examined = h("section", {"aria-label": t`Examination`});
  const pruned = h("section", {"aria-label": t`Pruned`}), audit = h("section", {"aria-label": t`Audit`});
  replace(content, h("h1", null, t`Health`),
    h("dl", {class: "figures"}, figures(stats).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))),
    h("div", {class: "columns"}, shares(t`By type`, stats.by_type, name => address("timeline", {type: name})),
      shares(t`By agent`, stats.by_agent, name => address("timeline", {agent: name})), byTier(stats.by_tier)),
    growth, workspace.isAdmin && examined, pruned, members, audit);
  if (workspace.isAdmin) offerExamination();
  await Promise.all([told(growth, drawGrowth()), told(pruned, drawPruned()), told(audit, drawAudit()),
    told(members, drawMembers())]);

  async function drawGrowth() {
    const found = await workspace.get("histogram", {bins: 60});
    if (!isCurrent() || found.bins.length < 2) return;
    let sum = 0;
    const points = [[found.start, 0], ...found.bins.map(bin => {
      sum += Object.values(bin.counts).reduce((one, other) => one + other, 0);
      return [bin.start + found.width, sum];
    })];
    replace(growth, h("h2", null, t`Growth`), lines(t`Memories by the time that they are about`, [{name: t`memories`, points}],
      {low: found.start, high: found.end, label: day, name: ""}, {low: 0, high: sum, label: number => count(Math.round(number))}));
  }

  function offerExamination() {
    const result = h("div", {"aria-live": "polite"}), milliseconds = seconds => `${Math.round(1000 * seconds)} ms`;
    replace(examined, h("h2", null, t`Examination`), h("p", {class: "note"},
      t`What rmem doctor finds, and how fast the server answers. It reads all of the store.`),
    h("button", {onclick: async () => {
      replace(result, waiting(t`Examining…`));
      let answer;
      try {
        for await (const line of workspace.lines("examination")) {
          answer = line;
          if (line.check) replace(result, progress(t`Examining ${line.check}…`, line.done, line.total));
        }
      } catch (error) {
        replace(result);
        throw error;
      }
      const {findings, latencies} = answer;
      replace(result, table([t`examined`, t`state`, t`detail`], findings.map(one => [one.name,
        h("span", {class: one.ok ? "" : "bad"}, one.ok ? t`sound` : t`not sound`), one.detail]), t`Findings`),
      table([t`route`, t`half within`, t`95 % within`, t`99 % within`], latencies.map(one => [`${one.method} ${one.route}`,
        ...[one.p50, one.p95, one.p99].map(milliseconds)]), t`Latency`));
    }}, t`Examine`), result);
  }

  async function drawPruned() {
    const aside = await workspace.get("pruned");
    if (!isCurrent()) return;
    if (!aside.memories.length) { replace(pruned); return; }
    replace(pruned, h("h2", null, t`Pruned, and can be restored`), aside.memories.slice(0, 100).map(memory =>
      h("article", {class: "card"}, h("p", {class: "text"}, memory.text.slice(0, 300)),
        h("div", {class: "row"}, h("span", {class: "note"}, t`until ${when(aside.until[memory.memory_id])}`),
          workspace.mayWrite && h("button", {onclick: async () => {
            const done = await workspace.send("POST", "restore", {ids: [memory.memory_id]});
            say(done.restored.length ? t`Restored.` : t`It could not be restored: its id is in use again.`);
            await drawPruned();
          }}, t`Restore`)))));
  }

  async function drawMembers() { // of the whole organisation for its administrators, which not all of a workspace are
    const ofAll = (await get("me")).role === "ADMIN", who = one => [one.member, one.role];
    if (!ofAll && !workspace.isAdmin) return;
    const parts = await Promise.all([
      listed(workspace.path("members"), "members", [t`member`, t`role in this workspace`], who, t`Members of this workspace`),
      ofAll && listed("members", "members", [t`member`, t`role in all workspaces`], who, t`Members`),
      ofAll && listed("tokens", "tokens", [t`member`, t`label`, t`may`, t`expires`, t`state`], one => [one.member, one.label,
        one.effective_role ?? t`nothing`, day(one.expires), one.state], t`Tokens`)]);
    if (isCurrent()) replace(members, h("h2", null, t`Members and tokens`), parts);
  }

  async function listed(path, key, names, row, label) {
    const part = h("div"), rows = [];
    await more();
    return part;

    async function more(cursor) {
      const page = await get(path, {limit: 200, cursor});
      rows.push(...page[key].map(row));
      replace(part, rows.length > 0 && table(names, rows, label),
        page.next_cursor && h("button", {onclick: () => more(page.next_cursor)}, t`More`));
    }
  }

  async function drawAudit(cursor) {
    if (!workspace.isAdmin) {
      replace(audit, h("h2", null, t`Audit`), h("p", {class: "note"}, t`Who did what is shown to administrators.`));
      return;
    }
    const page = await workspace.get("audit", {limit: 50, cursor}), verified = h("span", {role: "status"});
    if (!isCurrent()) return;
    replace(audit, h("h2", null, t`Audit`), h("div", {class: "row"},
      h("button", {onclick: async () => {
        const {sound, broken} = await workspace.get("audit/verify");
        verified.className = sound ? "" : "bad";
        verified.textContent = sound ? t`No entry was changed or taken away.` :
          t`Changed or missing: ${broken.slice(0, 20).join(", ")}.`;
      }}, t`Verify`), verified),
    page.entries.length ? table([t`time`, t`who`, t`action`, t`memory`, t`detail`], page.entries.map(entry => [h("time", null, when(entry.time)),
      entry.who, entry.action, entry.memory && h("a", {href: address("memory", {id: entry.memory})}, entry.memory),
      Object.entries(entry.detail).map(([key, value]) => `${key}: ${typeof value === "object" ? JSON.stringify(value) : value}`)
        .join(", ")]), t`Audit trail`) : h("p", {class: "note"}, t`Nothing was changed or removed yet.`),
    page.next_cursor && h("button", {onclick: () => drawAudit(page.next_cursor)}, t`Older`));
  }
}

function figures(stats) {
  return [
    [t`memories`, count(stats.memories)], [t`sessions`, count(stats.sessions)], [t`with vectors`, count(stats.vectors)],
    [t`words`, count(stats.words)], [t`size`, bytes(stats.bytes)], [t`embedder`, stats.embedder ?? t`none yet`],
    stats.oldest !== null && [t`oldest`, day(stats.oldest)], stats.newest !== null && [t`newest`, day(stats.newest)],
    stats.encrypted > 0 && [t`encrypted`, count(stats.encrypted)],
  ].filter(Boolean);
}
