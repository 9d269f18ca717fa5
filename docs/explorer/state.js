// The state of the page, and the link that keeps it. A link repeats only what differs from its preset.

import { catalogue, withRoles } from "./catalogue.js";
import { presets, ownPreset } from "./presets.js";

// Range of each number, and its name in a link.
export const numbers = {
  temperature: { key: "t", low: 1e-3, high: 10, log: true },
  alpha: { key: "alpha", low: 1e-3, high: 1, log: true },
  margin: { key: "m", low: 0, high: 1.5 },
  bias: { key: "b", low: -10, high: 5 },
  length: { key: "length", low: 0.1, high: 20, log: true },
  rate: { key: "rate", low: 1e-3, high: 10, log: true },
};

/** A preset as it is published; `name` may name a variant: "quadrants.0.05". */
export function opened(name) {
  const [preset, ...rest] = name.split(".");
  const { variants = {}, ...main } = presets[preset];
  const variant = variants[rest.join(".")] ?? {};
  const { title, ...own } = variant;
  const picked = Object.fromEntries(Object.keys(numbers).map((number) => [number, own[number] ?? main[number]]));
  return { preset: name, loss: main.loss, ...picked, points: copied(own.points ?? main.points), at: 0, view: "loss" };
}

export const isPreset = (name) => {
  const [preset, ...rest] = name.split(".");
  if (!Object.hasOwn(presets, preset)) return false;
  return !rest.length || Object.hasOwn(presets[preset].variants ?? {}, rest.join("."));
};

const copied = (points) => points.map((point) => ({ ...point }));
const written = (points) => points.map(({ role, label, angle }) => `${role}${label}:${angle}`).join(",");

/** The state as the part of a link behind #. Numbers are written with all their digits. */
export function encode(state) {
  const base = opened(state.preset);
  const parts = [["preset", state.preset]];
  if (state.loss !== base.loss) parts.push(["loss", state.loss]);
  for (const [name, { key }] of Object.entries(numbers)) if (state[name] !== base[name]) parts.push([key, state[name]]);
  if (state.at !== 0) parts.push(["at", state.at]);
  if (state.view !== "loss") parts.push(["view", state.view]);
  if (written(state.points) !== written(base.points)) parts.push(["points", written(state.points)]);
  return parts.map(([key, value]) => `${key}=${value}`).join("&");
}

/** The state of a link, and what of it could not be read; that is left as the preset has it. */
export function decode(text) {
  const parts = text.replace(/^#/, "").split("&").filter(Boolean);
  const given = new Map(parts.map((part) => part.split(/=(.*)/s).slice(0, 2)));
  const unread = [];
  const take = (key, accept) => {
    if (!given.has(key)) return undefined;
    const value = accept(given.get(key));
    if (value === undefined) unread.push(key);
    given.delete(key);
    return value;
  };
  const state = opened(take("preset", (name) => (isPreset(name) ? name : undefined)) ?? "start");
  const loss = take("loss", (name) => (Object.hasOwn(catalogue, name) ? name : undefined));
  for (const [name, { key, low, high }] of Object.entries(numbers)) {
    state[name] = take(key, (text) => number(text, low, high)) ?? state[name];
  }
  const points = take("points", readPoints);
  if (points) state.points = points;
  if (loss) state.loss = loss;
  if (!suits(state.points, state.loss)) {
    if (points) unread.push("points");
    Object.assign(state, suited(state, state.loss));
  }
  state.at = take("at", (text) => whole(text, state.points.length)) ?? 0;
  state.view = take("view", (name) => (["loss", "scaled"].includes(name) ? name : undefined)) ?? "loss";
  return { state, unread: [...new Set([...unread, ...given.keys()])] };
}

function number(text, low, high) {
  const value = text.trim() === "" ? NaN : Number(text);
  return value >= low && value <= high ? value : undefined;
}

const whole = (text, below) => (/^\d+$/.test(text) && Number(text) < below ? Number(text) : undefined);

// The quadrants with a center each, and a few more.
const MOST = 120;

function readPoints(text) {
  const points = text.split(",").map((entry) => /^([qknsc])([0-5]):(-?[\d.]+(?:e-?\d+)?)$/.exec(entry));
  if (points.length > MOST || points.some((match) => !match || !Number.isFinite(Number(match[3])))) return undefined;
  return points.map(([, role, label, angle]) => ({ role, label: Number(label), angle: Number(angle) }));
}

/** Whether a loss can be computed for points: pairs complete, two of each color, a center for each. */
export function suits(points, loss) {
  const labels = (role) => withRoles(points, role).map((at) => points[at].label);
  const distinct = (role) => new Set(labels(role)).size === labels(role).length;
  const roles = new Set(points.map((point) => point.role));
  const only = (allowed) => [...roles].every((role) => allowed.includes(role));
  if (catalogue[loss].anchors.includes("q")) {
    const same = labels("q").join() === labels("k").join() && distinct("q");
    // With negatives of its own there is one anchor: they are nobody else's.
    if (roles.has("n")) return same && loss === "info_nce" && only("qkn") && labels("q").length === 1;
    return same && only("qk") && labels("q").length > 1;
  }
  const enough = labels("s").every((label) => labels("s").filter((other) => other === label).length > 1);
  if (loss === "supcon_out") return enough && only("s") && labels("s").length > 1;
  // Labels count the centers from 0 on.
  const centered = labels("c").every((label, at) => label === at) && labels("s").every((y) => y < labels("c").length);
  return only("sc") && centered && labels("c").length > 1 && labels("s").length > 0;
}

/** The same points for another loss: pairs become samples of one color and back; else another preset with its points. */
export function suited({ points, preset }, loss) {
  const paired = catalogue[loss].anchors.includes("q");
  const ways = paired
    ? [points.filter(({ role }) => role !== "c" && role !== "n"), asPairs(points)]
    : [points.filter(({ role }) => role !== "c"), asSamples(points, loss !== "supcon_out")];
  const match = [points, ...ways].find((way) => suits(way, loss));
  if (match) return { preset, points: copied(match) };
  const other = ownPreset[paired ? "q" : "s"];
  return { preset: other, points: suited({ points: presets[other].points, preset: other }, loss).points };
}

function asSamples(points, centered) {
  const samples = points.filter(({ role }) => role !== "c" && role !== "n").map((point) => ({ ...point, role: "s" }));
  const labels = [...new Set(samples.map(({ label }) => label))].sort();
  const renamed = samples.map((point) => ({ ...point, label: labels.indexOf(point.label) }));
  const centers = labels.map((_, label) => ({ role: "c", label, angle: middle(renamed, label) }));
  return centered ? [...renamed, ...centers] : renamed;
}

/** Direction of the mean of the points of a label, in degrees. */
function middle(points, label) {
  const own = points.filter((point) => point.label === label).map(({ angle }) => (angle * Math.PI) / 180);
  const [x, y] = [Math.cos, Math.sin].map((f) => own.reduce((sum, angle) => sum + f(angle), 0));
  return Math.round((Math.atan2(y, x) * 180) / Math.PI);
}

/** The first two samples of each color. */
function asPairs(points) {
  const labels = [...new Set(points.filter(({ role }) => role === "s").map(({ label }) => label))];
  return labels.flatMap((label) => {
    const own = points.filter((point) => point.role === "s" && point.label === label).slice(0, 2);
    return own.map((point, at) => ({ ...point, role: "qk"[at] }));
  });
}
