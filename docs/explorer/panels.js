// The panels beside the circle: probabilities, the loss against the temperature, and published numbers.

import { anchorOf } from "./circle.js";
import { ownPoints } from "./caption.js";
import { catalogue } from "./catalogue.js";
import { shares, spread, valueAt } from "./model.js";
import { presets } from "./presets.js";
import { html, icon, linked, named, svg } from "./shapes.js";

/** A number as people write it: four decimals, or powers of ten where these say nothing. */
export function shown(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-3 || size >= 1e5) return minus(x.toExponential(2).replace("e+", "e"));
  return minus(size >= 100 ? x.toFixed(1) : size >= 10 ? x.toFixed(3) : x.toFixed(4));
}

const minus = (text) => text.replaceAll("-", "−");

/** The same in a cell of the matrix, with two digits. */
function brief(p) {
  if (p === 0) return "0";
  if (p < 0.005) return minus(`e${Math.floor(Math.log10(p))}`);
  return p > 0.995 ? "1.0" : p.toFixed(2).replace(/^0/, "");
}

const MOST_COLUMNS = 9;

/** Probabilities of the chosen anchor as bars, and of all anchors as a matrix; many candidates are summed by color. */
export function probabilities(element, state, model, choose) {
  const anchor = anchorOf(state, model);
  const row = model.anchors.indexOf(anchor);
  const many = model.candidates.length > MOST_COLUMNS;
  const bars = many ? grouped(state, model, row) : single(state, model, row);
  element.querySelector(".shows").textContent = catalogue[state.loss].shows;
  const seer = state.points[anchor];
  element.querySelector(".of").replaceChildren("seen from ", icon(seer), ` ${named(seer)}`);
  element.querySelector(".bars").replaceChildren(...bars.map(bar));
  const matrix = element.querySelector(".matrix");
  matrix.hidden = many || model.anchors.length < 2;
  matrix.classList.toggle("dense", model.anchors.length > 6);
  if (!matrix.hidden) matrix.replaceChildren(...table(state, model, anchor, choose));
}

const isOwn = (points, anchor, at) => points[at].label === points[anchor].label;

function single(state, model, row) {
  const { published, loss } = presets[state.preset.split(".")[0]];
  const printed = published?.find(([temperature]) => temperature === state.temperature);
  return model.candidates.flatMap((at, column) => {
    const p = model.probabilities[row][column];
    const source = state.loss === loss && ownPoints(state) ? printed?.[1][column] : undefined;
    const own = isOwn(state.points, model.anchors[row], at);
    return p === null ? [] : [{ p, point: state.points[at], own, count: 1, source }];
  });
}

function grouped(state, model, row) {
  const groups = new Map();
  model.candidates.forEach((at, column) => {
    const p = model.probabilities[row][column];
    if (p === null) return;
    const point = state.points[at];
    const key = point.role + point.label;
    const group = groups.get(key) ?? { p: 0, point, own: isOwn(state.points, model.anchors[row], at), count: 0 };
    groups.set(key, { ...group, p: group.p + p, count: group.count + 1 });
  });
  return [...groups.values()];
}

function bar({ p, point, own, count, source }) {
  const name = html("span", { class: "name" }, icon(point), count > 1 ? `${count} together` : own ? "positive" : "");
  const kind = own ? `fill own label-${point.label}` : "fill";
  const fill = html("span", { class: kind, style: `width:${(100 * p).toFixed(2)}%` });
  const number = html("span", { class: "number", "data-value": p }, shown(p));
  const hidden = html("span", { class: "hidden" }, `${named(point)}: `);
  const printed = source ? [html("span", { class: "printed", title: "as the temperature guide prints it" }, source)] : [];
  return html("li", {}, hidden, name, html("span", { class: "track" }, fill), number, ...printed);
}

function table(state, model, anchor, choose) {
  const mark = (at) => [icon(state.points[at]), html("span", { class: "hidden" }, named(state.points[at]))];
  const head = model.candidates.map((at) => html("th", { scope: "col" }, ...mark(at)));
  const body = model.anchors.map((at, i) => {
    const button = html("button", { type: "button", "aria-pressed": String(at === anchor) }, ...mark(at));
    button.addEventListener("click", () => choose(at));
    const cells = model.probabilities[i].map((p) =>
      p === null
        ? html("td", { class: "none" }, "·")
        : html("td", { style: `--p:${p.toFixed(3)}`, "data-value": p }, brief(p)),
    );
    return html("tr", {}, html("th", { scope: "row" }, button), ...cells);
  });
  const caption = html("caption", { class: "hidden" }, "Probabilities, anchor by candidate");
  return [caption, html("thead", {}, html("tr", {}, html("td"), ...head)), html("tbody", {}, ...body)];
}

// The curve.

const [LEFT, RIGHT, TOP, BOTTOM] = [38, 412, 12, 182];
const [COLD, HOT] = [-3, 1];
const across = (temperature) => LEFT + ((RIGHT - LEFT) * (Math.log10(temperature) - COLD)) / (HOT - COLD);
const grid = (count) => Array.from({ length: count }, (_, i) => 10 ** (COLD + ((HOT - COLD) * i) / (count - 1)));

/** Temperature at a place of the picture, within its range. */
export const temperatureAt = (x) =>
  10 ** Math.min(HOT, Math.max(COLD, COLD + ((x - LEFT) / (RIGHT - LEFT)) * (HOT - COLD)));

/** Temperatures of the curve. Of many points there are fewer: each takes milliseconds. */
export const temperatures = (state) => grid(state.points.length > MANY ? 33 : 121);
export const MANY = 40;

/** The loss, or temperature times loss, against the temperature, with both limits and their proven bands. */
export function curve(element, state, model, data) {
  const scaled = state.view === "scaled";
  const by = (temperature) => (scaled ? temperature : 1);
  const limit = model.limits;
  const here = by(state.temperature) * model.value;
  const ends = limit ? (scaled ? [0, limit.low, here, 0.3 * Math.abs(limit.high)] : [0, limit.high, here]) : [0, here];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const pad = 0.14 * (high - low || 1);
  const up = (y) => {
    const [bottom, top] = [low < 0 ? low - pad : low, high + pad];
    return Math.min(1e5, Math.max(-1e5, BOTTOM - ((BOTTOM - TOP) * (y - bottom)) / (top - bottom)));
  };
  const path = (pairs) => `M${pairs.map(([t, y]) => `${across(t).toFixed(1)},${up(by(t) * y).toFixed(1)}`).join("L")}`;
  const of = (f, over = data) => over.map(([t]) => [t, f(t)]);
  const band = (below, above, name, over) =>
    svg("path", { d: `${path(of(below, over))}L${path(of(above, over).reverse()).slice(1)}z`, class: `band ${name}` });
  const inside = svg("g", { "clip-path": "url(#plot)" });
  if (limit) {
    const line = (t) => limit.high + (limit.slope ?? 0) / t;
    if (limit.room && scaled)
      inside.append(
        band(
          (t) => limit.low / t,
          (t) => limit.low / t + limit.room,
          "cold",
        ),
      );
    // Toward low temperatures this band says nothing: it is drawn where it is narrow.
    const narrow = data.filter(([t]) => limit.square / t ** 2 < 0.8 * limit.room);
    if (limit.room && !scaled) inside.append(band(line, (t) => line(t) + limit.square / t ** 2, "hot", narrow));
    inside.append(svg("path", { d: path(of((t) => limit.low / t)), class: "limit cold" }));
    inside.append(svg("path", { d: path(of(() => limit.high)), class: "limit hot" }));
  }
  inside.append(svg("path", { d: path(data), class: "line" }));
  const [x, y] = [across(state.temperature), up(here)];
  inside.append(svg("line", { x1: x, x2: x, y1: TOP, y2: BOTTOM, class: "now" }));
  const dot = svg("circle", { cx: x, cy: y, r: 5, class: "dot" });
  element.querySelector(".drawn").replaceChildren(...axes(low, high, up), inside, dot);
}

function axes(low, high, up) {
  const decades = [0.001, 0.01, 0.1, 1, 10].flatMap((t) => [
    svg("line", { x1: across(t), x2: across(t), y1: TOP, y2: BOTTOM, class: "rule" }),
    text(across(t), BOTTOM + 15, String(t), "middle"),
  ]);
  const levels = nice(low, high).flatMap((y) => [
    svg("line", { x1: LEFT, x2: RIGHT, y1: up(y), y2: up(y), class: y === 0 ? "rule zero" : "rule" }),
    text(LEFT - 5, up(y) + 3.5, minus(String(Number(y.toPrecision(3)))), "end"),
  ]);
  return [...decades, ...levels, text((LEFT + RIGHT) / 2, BOTTOM + 30, "temperature τ", "middle")];
}

const text = (x, y, content, anchor) => svg("text", { x, y, "text-anchor": anchor }, content);

/** Round levels between two numbers. */
function nice(low, high) {
  const rough = (high - low || 1) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}

const BANDS = {
  loss: "Shaded: the loss lies at most R²/(8τ²) above its linearization in 1/τ, R the range of the similarities (claim WL-16).",
  scaled: "Shaded: τ L lies at most τ log N above its limit, the gap to the hardest candidate (claim WL-13).",
};

/** What the limits are, in words. */
export function limitsInWords(element, { limits }, { view }) {
  if (!limits) {
    const words =
      "This loss has no temperature. It is what InfoNCE tends to at a high one, up to a factor and a constant.";
    element.replaceChildren(html("p", {}, words));
    return;
  }
  const number = (x) => html("b", { "data-value": x }, shown(Math.abs(x) < 1e-12 ? 0 : x));
  const count = limits.count ? `L → log ${limits.count} = ` : "L → ";
  element.replaceChildren(
    html("p", { class: "cold" }, html("span", {}, "τ → 0"), "τ L → ", number(limits.low)),
    html("p", { class: "hot" }, html("span", {}, "τ → ∞"), count, number(limits.high)),
    ...(limits.room ? [html("p", { class: "hint" }, ...linked(BANDS[view]))] : []),
  );
}

/** Which mark is what, as far as the preset has it. */
export function key(element, { points, loss }) {
  const [q, k] = catalogue[loss].members ?? ["anchor", "its partner"];
  const words = { q, k, s: "sample", n: "negative", c: loss === "paco" ? "center" : "class weight" };
  const roles = Object.keys(words).filter((role) => points.some((point) => point.role === role));
  const first = (role) => points.find((point) => point.role === role);
  element.replaceChildren(...roles.map((role) => html("span", {}, icon(first(role)), words[role])));
}

/** The chosen point: where it is, and the force on it. */
export function force(element, { points, at }, { forces }) {
  const turn = Math.abs(forces[at]) < 1e-300 ? "" : forces[at] > 0 ? " ↺" : " ↻";
  const number = html("b", { "data-value": forces[at] }, shown(Math.abs(forces[at])));
  element.replaceChildren(icon(points[at]), `${minus(points[at].angle.toFixed(1))}°, force `, number, turn);
}

// Published numbers.

/** What a preset compares with: a table of the source, or what is replayed or derived. */
export function published(element, state, model, { setTemperature, open }) {
  const [name] = state.preset.split(".");
  const preset = presets[name];
  const rows = rowsOf(preset, state, model, setTemperature);
  element.hidden = rows === null;
  if (rows === null) return;
  const head = html("tr", {}, ...rows[0].map((title) => html("th", { scope: "col" }, title)));
  const body = rows.slice(1).map((row) => html("tr", {}, ...row.map(cell)));
  const numbers = html("table", {}, html("thead", {}, head), html("tbody", {}, ...body));
  element.replaceChildren(...(preset.variants ? [choices(name, preset, state, open)] : []), numbers);
}

/** Rows of the table, or null where nothing of what is published is about this scene. */
function rowsOf(preset, state, model, setTemperature) {
  if (state.loss !== preset.loss) return null;
  if (preset.optimum) return optimumRows(state, model);
  if (!ownPoints(state)) return null;
  if (preset.published) return printedRows(state, preset, setTemperature);
  return preset.variants ? variantRows(state) : null;
}

function cell(content, at) {
  if (at === 0) return html("th", { scope: "row" }, content);
  return typeof content === "number" ? html("td", { "data-value": content }, shown(content)) : html("td", {}, content);
}

function printedRows(state, { published }, setTemperature) {
  const rows = published.map(([temperature, , loss]) => {
    const pressed = String(state.temperature === temperature);
    const button = html("button", { type: "button", "aria-pressed": pressed }, `τ = ${temperature}`);
    button.addEventListener("click", () => setTemperature(temperature));
    return [button, loss, valueAt(state, temperature)];
  });
  return [["Loss at", "printed", "here"], ...rows];
}

function variantRows(state) {
  const [, ...rest] = state.preset.split(".");
  const replayed = presets.quadrants.replayed[rest.join(".") || "untrained"];
  const here = spread(state);
  const words = {
    within: "cosine within a quadrant",
    between: "cosine between quadrants",
    uniformity: "uniformity (lower: more even)",
  };
  const rows = Object.entries(words).map(([key, word]) => [word, minus(replayed[key].toFixed(4)), here[key]]);
  return [["Means over pairs", "replayed", "here"], ...rows];
}

function choices(name, { variants }, state, open) {
  const buttons = Object.entries(variants).map(([variant, { title }]) => {
    const own = `${name}.${variant}`;
    const pressed = state.preset === own || (state.preset === name && variant === "untrained");
    const button = html("button", { type: "button", "aria-pressed": String(pressed) }, title);
    button.addEventListener("click", () => open(own));
    return button;
  });
  return html("div", { class: "choices", role: "group", "aria-label": "Features" }, ...buttons);
}

/** What is printed is of the points of the preset; the optimum is that of anchors with equally many positives each. */
function optimumRows(state, model) {
  const { centers, positive, positives, even } = shares(state, model);
  const mass = 1 + state.alpha * positives;
  const columns = [
    ["Probability", "of the centers", "of each positive"],
    ...(ownPoints(state) ? [["printed", "0.71", "0.035"]] : []),
    ...(even ? [["optimum", 1 / mass, state.alpha / mass]] : []),
    ["here", centers, positive],
  ];
  const rows = positives > 0 ? [0, 1, 2] : [0, 1];
  return rows.map((row) => columns.map((column) => column[row]));
}
