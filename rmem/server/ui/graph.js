// The graph of facts around an entity, at a time: expand it by a click, read the sentences, see what contradicts.

import {CHART_WIDTH, count, field, h, later, plural, problem, replace, s, told} from "./dom.js";
import {t} from "./text.js";

export const title = t`Graph`;
const WIDTH = CHART_WIDTH, HEIGHT = 440, MOST = WIDTH < 500 ? 14 : 30, STEPS = 200, NAME = 20, ROOM = 90, CROWD = 12;

export async function show({content, parameters, workspace, address, note, isCurrent}) {
  const asked = {entity: parameters.get("entity") ?? "", at: parameters.get("at") ?? "", goal: parameters.get("goal") ?? ""};
  const box = h("input", {type: "search", value: asked.entity, list: "entities", autocomplete: "off"});
  const names = h("datalist", {id: "entities"});
  const at = h("input", {type: "date", value: asked.at});
  const goal = h("input", {value: asked.goal, list: "entities", autocomplete: "off"});
  const body = h("div");
  replace(content, h("h1", null, t`Graph`),
    h("form", {class: "row", onsubmit: event => {
      event.preventDefault();
      Object.assign(asked, {entity: box.value.trim(), at: at.value, goal: goal.value.trim()});
      refresh();
    }}, field(t`Entity`, box), names, field(t`At (now, if empty)`, at), field(t`Path to (optional)`, goal),
    h("button", {class: "main"}, t`Show`)), body);
  box.addEventListener("input", later(200, async () => {
    if (!box.value.trim()) return;
    const found = await workspace.get("graph/entities", {like: box.value.trim(), limit: 20});
    replace(names, found.entities.map(one => h("option", {value: one.name}, plural(one.facts, t`fact`, t`facts`))));
  }));

  async function refresh() {
    note(asked);
    try {
      if (!asked.entity) replace(body, await overview());
      else if (asked.goal) replace(body, await paths());
      else await around();
    } catch (error) {
      replace(body, problem(error));
    }
  }

  async function overview() {
    const [size, entities] = await Promise.all([workspace.get("graph"), workspace.get("graph/entities", {limit: 60})]);
    if (!size.facts) {
      return [h("h2", null, t`No facts are known yet`),
        h("p", null, t`Facts are read from memories as they are remembered, such as `, h("q", null, "Billing depends on Redis."),
          " State one yourself:"),
        h("p", null, h("code", null, "rmem fact add staging \"runs on\" \"port 5434\"")),
        h("p", null, h("code", null, "rmem reindex"), t` reads facts from memories that were kept before there were any.`)];
    }
    const disputed = h("section", {"aria-label": t`Contradictions`});
    told(disputed, drawDisputed(disputed)); // reads every fact, so the rest does not wait for it
    return [h("p", null, t`${plural(size.facts, t`fact`, t`facts`)}. Choose what to look at:`),
      h("ul", {class: "cloud"}, entities.entities.map(one => h("li", null,
        h("a", {href: address("graph", {entity: one.name})}, one.name), " ", h("small", null, count(one.facts))))),
      disputed];
  }

  async function drawDisputed(part) {
    const pairs = await workspace.get("graph/contradictions", {limit: 20});
    if (!isCurrent() || !pairs.contradictions.length) return;
    replace(part, h("h2", null, t`Contradictions`), h("ul", {class: "contradictions"}, pairs.contradictions.map(pair =>
      h("li", null, sentence(pair.first), h("br"), sentence(pair.second)))));
  }

  async function paths() {
    const found = await workspace.get("graph/paths", {start: asked.entity, goal: asked.goal, k: 5, max_hops: 4, at: asked.at});
    if (!found.paths.length) return h("p", null, t`No way of at most four facts leads from ${asked.entity} to ${asked.goal}.`);
    return [h("h2", null, t`From ${asked.entity} to ${asked.goal}`),
      h("ol", null, found.paths.map(path => h("li", null, h("ul", null, path.facts.map(one => h("li", null, sentence(one)))))))];
  }

  async function around() {
    const nodes = new Map(), facts = new Map(), red = new Set(), rest = new Map();
    const picture = h("div", {class: "chart"}), list = h("ul", {class: "facts"}), further = h("div", {class: "row"});
    replace(body, picture, h("p", {class: "note"}, t`Choose a name to see what is connected with it too. `,
      t`Red: contradicted by another fact.`), h("h2", null, t`Facts`), list, further);
    await expand(asked.entity);
    if (!nodes.size) {
      replace(body, h("p", null, asked.at ? t`Nothing is known of ${asked.entity} at ${asked.at}.` : t`Nothing is known of ${asked.entity}.`),
        h("p", null, h("a", {href: address("graph")}, t`All entities`)));
    }

    async function expand(name, cursor) {
      const [found, pairs] = await Promise.all([
        workspace.get("graph/neighbours", {entity: name, limit: MOST, at: asked.at, cursor}), workspace.get("graph/contradictions", {entity: name, limit: 1000})]);
      if (!isCurrent()) return;
      for (const pair of pairs.contradictions) { red.add(pair.first.id); red.add(pair.second.id); }
      if (found.neighbours.length && !nodes.has(key(name))) nodes.set(key(name), {name, fixed: !nodes.size});
      const start = nodes.get(key(name));
      if (start) start.open = true;
      for (const one of found.neighbours) {
        if (!nodes.has(key(one.name))) nodes.set(key(one.name), {name: one.name, value: one.fact.is_value, near: start});
        facts.set(one.fact.id, {fact: one.fact, ends: one.outgoing ? [key(name), key(one.name)] : [key(one.name), key(name)]});
      }
      place(nodes, facts);
      replace(picture, draw(nodes, facts, red, expand));
      replace(list, [...facts.values()].map(({fact}) => factItem(fact)));
      if (found.next_cursor) rest.set(name, found.next_cursor);
      else rest.delete(name);
      replace(further, [...rest].map(([one, following]) => h("button", {onclick: () => expand(one, following)}, t`More about ${one}`)));
    }

    function factItem(fact) {
      const more = h("div");
      return h("li", {class: red.has(fact.id) && "bad"}, h("details", {ontoggle: async event => {
        if (!event.target.open || more.childNodes.length) return;
        try {
          const why = await workspace.get(`graph/facts/${encodeURIComponent(fact.id)}/explain`);
          replace(more, h("blockquote", null, why.sentence || why.text),
            h("p", null, h("a", {href: address("memory", {id: fact.memory_id})}, t`The memory that says it`)),
            why.others.length > 0 && [h("p", null, t`Other values:`),
              h("ul", null, why.others.map(one => h("li", null, sentence(one))))]);
        } catch (error) {
          replace(more, problem(error));
        }
      }}, h("summary", null, sentence(fact)), more));
    }
  }

  await refresh();
}

const key = name => name.toLowerCase();

function sentence(fact) {
  const until = fact.valid_until ? ` until ${fact.valid_until.slice(0, 10)}` : "";
  return `${fact.negated ? "not: " : ""}${fact.subject} – ${fact.relation} – ${fact.object} ` +
    `(since ${fact.valid_from.slice(0, 10)}${until}, ${fact.trust})`;
}

/** Give every node a place: springs along facts, all others push each other away. The same graph looks the same. */
function place(nodes, facts) {
  const all = [...nodes.values()];
  all.forEach((node, at) => {
    if (node.x !== undefined) return;
    const angle = at * 2.39996, far = 60 + 8 * Math.sqrt(at) * 6;
    node.x = node.fixed ? WIDTH / 2 : (node.near?.x ?? WIDTH / 2) + far * Math.cos(angle);
    node.y = node.fixed ? HEIGHT / 2 : (node.near?.y ?? HEIGHT / 2) + far * Math.sin(angle);
  });
  const springs = [...facts.values()].map(({ends}) => ends.map(end => nodes.get(end))).filter(ends => ends[0] && ends[1]);
  const length = Math.max(60, Math.min(130, 700 / Math.sqrt(all.length + 1)));
  for (let step = 0; step < STEPS; step += 1) {
    const heat = 14 * (1 - step / STEPS) + 0.5;
    const push = new Map(all.map(node => [node, {x: (WIDTH / 2 - node.x) * 0.02, y: (HEIGHT / 2 - node.y) * 0.05}]));
    for (let one = 0; one < all.length; one += 1) {
      for (let other = one + 1; other < all.length; other += 1) {
        const a = all[one], b = all[other];
        const dx = a.x - b.x || 0.1, dy = (a.y - b.y || 0.1) * 1.8, far = dx * dx + dy * dy;
        const force = 0.3 * length * length / far;
        push.get(a).x += dx * force; push.get(a).y += dy * force;
        push.get(b).x -= dx * force; push.get(b).y -= dy * force;
      }
    }
    for (const [a, b] of springs) {
      const dx = b.x - a.x, dy = b.y - a.y, far = Math.hypot(dx, dy) || 1, force = (far - length) / far * 0.5;
      push.get(a).x += dx * force; push.get(a).y += dy * force;
      push.get(b).x -= dx * force; push.get(b).y -= dy * force;
    }
    for (const node of all) {
      if (node.fixed) continue;
      const {x, y} = push.get(node), far = Math.hypot(x, y) || 1, most = Math.min(far, heat);
      node.x = Math.max(60, Math.min(WIDTH - 60, node.x + x / far * most));
      node.y = Math.max(20, Math.min(HEIGHT - 20, node.y + y / far * most));
    }
  }
}

function draw(nodes, facts, red, expand) {
  const isCrowded = facts.size > CROWD; // the list below names the relations, and so does each line that is pointed at; arrows would cover the middle
  const lines = [...facts.values()].map(({fact, ends}) => {
    const [a, b] = ends.map(end => nodes.get(end));
    if (!a || !b) return null;
    return s("g", {class: red.has(fact.id) ? "edge bad" : "edge"}, s("title", null, sentence(fact)),
      s("line", {x1: a.x, y1: a.y, x2: b.x, y2: b.y, "marker-end": isCrowded ? undefined : "url(#arrow)"}),
      isCrowded ? null : s("text", {x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 - 3, "text-anchor": "middle"}, short(fact.relation, 22)));
  });
  const points = [...nodes.values()].map(node => {
    const open = node.value || node.open;
    const act = () => { if (!open) expand(node.name); };
    return s("g", {class: `node${node.fixed ? " centre" : ""}${open ? "" : " closed"}`, tabindex: open ? undefined : 0,
      role: open ? undefined : "button", "aria-label": open ? undefined : t`Show what is connected with ${node.name}`,
      onclick: act, onkeydown: event => { if (event.key === "Enter") act(); }},
    s("title", null, node.name), s("circle", {cx: node.x, cy: node.y, r: node.fixed ? 9 : 6}),
    s("text", {y: node.y > HEIGHT / 2 + 1 ? node.y + 19 : node.y - 11, ...beside(node.x)}, short(node.name, NAME)));
  });
  return s("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": t`Facts as a graph; they are listed below`},
    s("defs", null, s("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 15, refY: 4, markerWidth: 7, markerHeight: 7,
      orient: "auto"}, s("path", {d: "M0 0 8 4 0 8z"}))), lines, points);
}

/** Where a name stands so that no edge of the picture cuts it. */
function beside(x) {
  if (x < ROOM) return {x: x - 54, "text-anchor": "start"};
  return x > WIDTH - ROOM ? {x: x + 54, "text-anchor": "end"} : {x, "text-anchor": "middle"};
}

const short = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;
