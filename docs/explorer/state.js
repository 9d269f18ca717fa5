// The state of the page: a preset, or what was made of it; and its points for another loss.

import { catalogue, withRoles } from "./catalogue.js";
import { presets, ownPreset } from "./presets.js";

// Range of each number, its name in a link and in words.
export const numbers = {
  temperature: { key: "t", word: "Temperature", sign: "τ", low: 1e-3, high: 10, log: true },
  alpha: { key: "alpha", word: "Positive weight", sign: "α", low: 1e-3, high: 1, log: true },
  margin: { key: "m", word: "Margin (radians)", sign: "m", low: 0, high: 1.5 },
  bias: { key: "b", word: "Bias", sign: "b", low: -10, high: 5 },
  length: { key: "length", word: "Center length", sign: "|c|", low: 0.1, high: 20, log: true },
  rate: { key: "rate", word: "Step size", sign: "", low: 1e-3, high: 10, log: true },
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
export const written = (points) => points.map(({ role, label, angle }) => `${role}${label}:${angle}`).join(",");

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

/** What a loss takes, in words. */
export function needs(loss) {
  if (catalogue[loss].anchors.includes("q")) return "two or more pairs q, k of a color each";
  if (loss === "supcon_out") return "samples s, two or more of each color";
  return "samples s, and a center c for each of the colors 0, 1, …";
}

/**
 * The same points for another loss: pairs become samples of one color and back, a negative a pair of two equal views.
 * Points that nothing is made of are replaced by another preset.
 */
export function suited({ points, preset }, loss) {
  const paired = catalogue[loss].anchors.includes("q");
  const kept = points.filter(({ role }) => role !== "c");
  const views = kept.flatMap((point) => (point.role === "n" ? twice(point) : [point]));
  const ways = paired ? [views, asPairs(points)] : [views, asSamples(views, loss !== "supcon_out")];
  const match = [points, ...ways].find((way) => suits(way, loss));
  if (match) return { preset, points: copied(match) };
  const other = ownPreset[paired ? "q" : "s"];
  return { preset: other, points: suited({ points: presets[other].points, preset: other }, loss).points };
}

/** The points of a state for another loss. Points that nobody has moved are made anew from those of the preset. */
export function exchanged(state, loss) {
  const base = opened(state.preset);
  const untouched = written(state.points) === written(suited(base, state.loss).points);
  return suited(untouched ? base : state, loss);
}

const twice = (point) => ["q", "k"].map((role) => ({ ...point, role }));

function asSamples(points, centered) {
  const samples = points.map((point) => ({ ...point, role: "s" }));
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
