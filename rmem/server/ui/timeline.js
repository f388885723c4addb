// Memories over time: bars that the server has counted, a brush to look closer, and a slider back to what was known then.

import {CHART_WIDTH, add, choice, count, day, field, h, later, leftOut, plural, problem, replace, s, when} from "./dom.js";
import {teach} from "./empty.js";
import {card} from "./search.js";
import {t} from "./text.js";

export const title = t`Timeline`;
const WIDTH = CHART_WIDTH, HEIGHT = 220, BOTTOM = 24, BINS = 80, BAND = 9, LANES = 5, SECONDS = 3, FEED = 50;

export async function show({content, parameters, workspace, address, note, isCurrent}) {
  const stats = await workspace.get("stats");
  if (!isCurrent()) return;
  if (!stats.memories) {
    teach(content, workspace);
    return;
  }
  const asked = {by: parameters.get("by") ?? "type"};
  for (const name of ["agent", "type", "session", "since", "until", "as_of"]) asked[name] = parameters.get(name) ?? "";
  const first = stats.oldest, last = Math.max(stats.newest, stats.oldest + 1);

  const controls = {
    by: choice(["type", "agent", "tier", "importance"], asked.by),
    agent: choice(Object.keys(stats.by_agent).slice(0, 500), asked.agent, t`any agent`),
    type: choice(Object.keys(stats.by_type), asked.type, t`any type`),
  };
  const from = h("input", {type: "datetime-local", value: local(asked.since)});
  const to = h("input", {type: "datetime-local", value: local(asked.until)});
  const slider = h("input", {type: "range", min: 0, max: 1000, value: asked.as_of ? position(asked.as_of) : 1000});
  const known = h("output");
  const live = h("input", {type: "checkbox", checked: parameters.get("live") === "1"}), feed = h("ul", {class: "feed", "aria-label": t`Live feed`});
  const chart = h("div", {class: "chart"}), list = h("section", {"aria-label": t`Memories`, "aria-live": "polite"});
  replace(content, h("h1", null, t`Timeline`), leftOut(stats),
    h("div", {class: "row"}, field(t`Colours by`, controls.by), field(t`Agent`, controls.agent),
      field(t`Type`, controls.type), field(t`From`, from), field(t`To`, to),
      h("button", {onclick: () => zoom("", "")}, t`Whole time`),
      asked.session && h("button", {onclick: () => { asked.session = ""; refresh(); }}, t`Session ${asked.session} ✕`)),
    chart,
    h("div", {class: "row wide"}, field(t`As of`, slider, t`What was known then: drag to the left to go back.`), known),
    h("div", {class: "row"}, h("label", null, live, " ", t`Live: what is written, recalled and shown to agents right now`)), feed, list);

  function position(time) { return Math.round(1000 * (Number(time) - first) / (last - first)); }

  function filter() {
    const until = [asked.until, asked.as_of].filter(Boolean).map(Number);
    return {agent: asked.agent, type: asked.type, session: asked.session, since: asked.since,
      until: until.length ? Math.min(...until) : ""};
  }

  function zoom(since, until) {
    asked.since = since;
    asked.until = until;
    from.value = local(since);
    to.value = local(until);
    refresh();
  }

  async function refresh() {
    note(asked);
    known.textContent = asked.as_of ? t`as of ${when(Number(asked.as_of))}` : t`now`;
    try {
      const [told, listed, sessions] = await Promise.all([
        workspace.get("histogram", {...filter(), by: asked.by, bins: BINS}),
        workspace.get("memories", {...filter(), limit: 20}), workspace.get("sessions", {...filter(), limit: 200})]);
      if (!isCurrent()) return;
      replace(chart, draw(told, zoom, sessions, name => { asked.session = name; refresh(); }));
      replace(list, h("h2", null, plural(listed.total, t`memory`, t`memories`)),
        listed.memories.map(one => card(one, address)), listed.next_cursor && more(listed.next_cursor));
    } catch (error) {
      replace(chart, problem(error));
    }
  }

  function more(cursor) {
    const button = h("button", {onclick: async () => {
      const listed = await workspace.get("memories", {...filter(), limit: 20, cursor});
      button.replaceWith(...listed.memories.map(one => card(one, address)),
        ...(listed.next_cursor ? [more(listed.next_cursor)] : []));
    }}, t`More`);
    return button;
  }

  const seen = new Set();
  let since = Date.now() / 1000 - 60;

  /** Ask what happened since the last time, again and again as long as this page is shown and wants it. */
  async function follow() {
    if (!isCurrent() || !live.checked) return;
    if (!document.hidden) {
      try {
        const {entries} = await workspace.get("activity", {since});
        for (const one of entries.reverse()) {
          const key = `${one.time} ${one.action} ${one.memory_id} ${one.text}`;
          if (seen.has(key)) continue;
          seen.add(key);
          since = Math.max(since, Math.min(one.time, Date.now() / 1000));
          feed.prepend(h("li", null, h("time", null, when(one.time)), " ", h("span", {class: "pill"}, one.action), " ",
            one.who && h("span", {class: "note"}, `${one.who} `), one.memory_id ?
              h("a", {href: address("memory", {id: one.memory_id})}, one.text || one.memory_id) : h("span", null, one.text)));
        }
        while (feed.children.length > FEED) feed.lastChild.remove();
      } catch (error) {
        replace(feed, add(h("li"), problem(error)));
      }
    }
    setTimeout(follow, 1000 * SECONDS);
  }
  live.addEventListener("change", () => { asked.live = live.checked ? "1" : ""; note(asked); follow(); });
  follow();

  for (const [name, control] of Object.entries(controls)) {
    control.addEventListener("change", () => { asked[name] = control.value; refresh(); });
  }
  const seconds = control => control.value ? String(new Date(control.value).getTime() / 1000) : "";
  for (const control of [from, to]) control.addEventListener("change", () => zoom(seconds(from), seconds(to)));
  const slid = later(200, refresh);
  slider.addEventListener("input", () => {
    const at = Number(slider.value);
    asked.as_of = at >= 1000 ? "" : String(first + (last - first) * at / 1000);
    known.textContent = asked.as_of ? t`as of ${when(Number(asked.as_of))}` : t`now`;
    slid();
  });
  await refresh();
}

/** Seconds since the epoch as a datetime-local input has them. */
function local(seconds) {
  if (!seconds) return "";
  return when(Number(seconds)).replace(" ", "T");
}

/** Sessions as bands, each in the first lane that is free. */
function bands(sessions, x, choose) {
  const ends = [];
  const drawn = sessions.sessions.slice().sort((one, other) => one.start - other.start).map(one => {
    const left = Math.max(0, x(one.start)), right = Math.min(WIDTH, Math.max(x(one.end), left + 3));
    let lane = ends.findIndex(end => end < left);
    if (lane < 0) lane = ends.length;
    if (lane >= LANES || right < 0 || left > WIDTH) return null;
    ends[lane] = right;
    const label = t`Session ${one.session} of ${one.agent}: ${when(one.start)} to ${when(one.end)}, ${plural(one.memories, t`memory`, t`memories`)}`;
    return s("g", {tabindex: 0, role: "button", class: "band", "aria-label": label, onclick: () => choose(one.session),
      onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(one.session); } }},
    s("title", null, label), s("rect", {x: left, y: HEIGHT + lane * BAND, width: right - left, height: BAND - 2, rx: 2}));
  });
  return {lanes: drawn.filter(Boolean), height: ends.length * BAND};
}

/** The bars of a histogram, and sessions as bands below. Dragging over them, or Enter on one, looks closer. */
function draw(told, zoom, sessions, choose) {
  if (!told.bins.length) return h("p", null, t`No memories in this time.`);
  const highest = Math.max(...told.bins.map(bin => total(bin)));
  const span = Math.max(told.end - told.start, 1e-6), wide = WIDTH * told.width / span;
  const x = time => WIDTH * (time - told.start) / span, y = number => (HEIGHT - BOTTOM) * number / highest;
  const brush = s("rect", {class: "brush", y: 0, height: HEIGHT - BOTTOM, width: 0});
  const bars = told.bins.map(bin => {
    const label = `${when(bin.start)}: ${told.names.filter(name => bin.counts[name])
      .map(name => `${name} ${count(bin.counts[name])}`).join(", ")}`;
    const closer = () => zoom(String(bin.start), String(bin.start + told.width));
    let top = HEIGHT - BOTTOM;
    return s("g", {tabindex: 0, role: "button", "aria-label": t`${label}. Look closer`, onkeydown: event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); closer(); }
    }}, s("title", null, label), told.names.map((name, at) => {
      const high = y(bin.counts[name] ?? 0);
      top -= high;
      return high > 0 && s("rect", {class: `colour-${at}`, x: x(bin.start), y: top, width: Math.max(1, wide - 1),
        height: high});
    }));
  });
  const ticks = (WIDTH < 500 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]).map(part => {
    const time = told.start + span * part;
    return s("text", {x: WIDTH * part, y: HEIGHT - 6, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle"},
      span > 4 * 86400 ? day(time) : when(time));
  });
  const {lanes, height} = bands(sessions, x, choose);
  const drawing = s("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT + height}`, role: "group",
    "aria-label": t`${plural(told.total, t`memory`, t`memories`)} from ${when(told.start)} to ${when(told.end)}`},
  bars, ticks, lanes, s("text", {x: 2, y: 12}, count(highest)), brush);
  brushing(drawing, brush, (low, high) => zoom(String(told.start + span * low / WIDTH),
    String(told.start + span * high / WIDTH)));
  return [drawing, h("ul", {class: "legend"}, told.names.map((name, at) =>
    h("li", null, h("span", {class: `swatch colour-${at}`}), name)),
  lanes.length > 0 && h("li", null, h("span", {class: "swatch session"}), lanes.length < sessions.total ?
    t`${count(lanes.length)} of ${plural(sessions.total, t`session`, t`sessions`)}` : plural(sessions.total, t`session`, t`sessions`)))];
}

const total = bin => Object.values(bin.counts).reduce((sum, number) => sum + number, 0);

function brushing(drawing, brush, done) {
  let start = null;
  const at = event => {
    const box = drawing.getBoundingClientRect();
    return Math.max(0, Math.min(WIDTH, WIDTH * (event.clientX - box.left) / box.width));
  };
  drawing.addEventListener("pointerdown", event => {
    if (event.target.closest(".band")) return;
    start = at(event);
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", event => {
    if (start === null) return;
    const now = at(event);
    brush.setAttribute("x", Math.min(start, now));
    brush.setAttribute("width", Math.abs(now - start));
  });
  drawing.addEventListener("pointerup", event => {
    const now = at(event), low = Math.min(start ?? now, now), high = Math.max(start ?? now, now);
    start = null;
    brush.setAttribute("width", 0);
    if (high - low > 6) done(low, high);
  });
}
