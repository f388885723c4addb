// Charts as SVG and as bars: what several pages draw.

import {CHART_WIDTH, TIERS, count, h, plural, s} from "./dom.js";
import {t} from "./text.js";

const WIDTH = CHART_WIDTH, HEIGHT = 220, LEFT = 44, BOTTOM = 34, TOP = 10;

/** Lines over an axis. A series is {name, points: [[x, y], …]}; `x` and `y` are {low, high, label: number → text, name}.
 * `guide` is a dashed line from one point to another. */
export function lines(label, series, x, y, guide) {
  const across = value => LEFT + (WIDTH - LEFT - 8) * (value - x.low) / (x.high - x.low || 1);
  const up = value => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - y.low) / (y.high - y.low || 1);
  const at = [0, 0.5, 1];
  return h("figure", null, s("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label},
    s("path", {class: "axis", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - 8}`}),
    guide && s("path", {class: "guide", d: `M${across(guide[0][0])} ${up(guide[0][1])}L${across(guide[1][0])} ${up(guide[1][1])}`}),
    at.map(part => s("text", {x: LEFT - 4, y: up(y.low + part * (y.high - y.low)) + 4, "text-anchor": "end"},
      y.label(y.low + part * (y.high - y.low)))),
    at.map(part => s("text", {x: across(x.low + part * (x.high - x.low)), y: HEIGHT - BOTTOM + 14,
      "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle"}, x.label(x.low + part * (x.high - x.low)))),
    s("text", {x: WIDTH / 2, y: HEIGHT - 4, "text-anchor": "middle"}, x.name),
    series.map((one, number) => [
      s("polyline", {class: `line line-${number}`, points: one.points.map(([a, b]) => `${across(a)},${up(b)}`).join(" ")}),
      one.points.length < 60 && one.points.map(([a, b]) => s("circle", {class: `colour-${number}`, cx: across(a), cy: up(b), r: 3},
        s("title", null, `${one.name}: ${x.label(a)}, ${y.label(b)}`)))])),
  h("figcaption", null, h("ul", {class: "legend"}, series.map((one, number) =>
    h("li", null, h("span", {class: `swatch colour-${number}`}), one.name)))));
}

const MOST = 15;

/** Numbers by name (an object, or pairs) as bars, the most first unless `sorted`; in two directions if some are negative. */
export function shares(name, counts, link, {sorted = false, shown = count} = {}) {
  const all = Array.isArray(counts) ? counts : Object.entries(counts);
  if (!sorted) all.sort(([, one], [, other]) => other - one);
  const most = Math.max(...all.map(([, number]) => Math.abs(number))) || 1, both = all.some(([, number]) => number < 0);
  return all.length > 0 && h("section", null, h("h2", null, name), h("dl", {class: "parts"},
    all.slice(0, MOST).map(([label, number]) => {
      const line = h("span", {class: number < 0 ? "less" : both ? "more" : "more left"});
      line.style.width = `${(both ? 50 : 100) * Math.abs(number / most)}%`;
      return [h("dt", null, link ? h("a", {href: link(label)}, label) : label),
        h("dd", null, h("span", {class: "track"}, line), h("span", {class: "number"}, shown(number)))];
    })), all.length > MOST && h("p", {class: "note"}, t`and ${plural(all.length - MOST, t`other`, t`others`)}`));
}

/** Counts by tier, from the shortest to the longest. */
export const byTier = counts => shares(t`By tier`, Object.fromEntries(Object.entries(TIERS)
  .filter(([tier]) => tier in counts).map(([tier, name]) => [name, counts[tier]])), null, {sorted: true});
