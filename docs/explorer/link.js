// The link that keeps the state, and how one is read. A link repeats only what differs from its preset.

import { catalogue } from "./catalogue.js";
import { presets } from "./presets.js";
import { isPreset, needs, numbers, opened, suited, suits, written } from "./state.js";

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

/** The state of a link; and what of it could not be read, in words, with what is shown instead. */
export function decode(text) {
  const link = reader(text);
  const preset = (name) => (isPreset(name) ? name : undefined);
  const loss = (name) => (Object.hasOwn(catalogue, name) ? name : undefined);
  const state = opened(link.take("preset", preset, "start", "there is no such scene", "“Three pairs” is shown"));
  const shown = `${catalogue[state.loss].title} is shown`;
  state.loss = link.take("loss", loss, state.loss, "there is no such loss", shown);
  for (const [name, { key, word, low, high }] of Object.entries(numbers)) {
    const why = `${word.toLowerCase()} is a number from ${low} to ${high}`;
    state[name] = link.take(key, (text) => number(text, low, high), state[name], why, `${state[name]} is shown`);
  }
  Object.assign(state, pointsOf(link, state));
  const { length } = state.points;
  state.at = link.take("at", (text) => whole(text, length), 0, `there are points 0 to ${length - 1}`, "0 is chosen");
  const view = (name) => (["loss", "scaled"].includes(name) ? name : undefined);
  state.view = link.take("view", view, "loss", "it is loss or scaled", "the loss is drawn");
  link.finish();
  return { state, unread: link.unread };
}

/** The points of a link, or those of its preset; where they do not suit the loss, what does. */
function pointsOf(link, state) {
  const why = `it is a list such as q0:90,k0:20 of ${MOST} points at most`;
  const points = link.take("points", readPoints, null, why, "those of the scene are shown");
  const shown = suited(points ? { ...state, points } : state, state.loss);
  if (points && !suits(points, state.loss)) {
    const title = presets[shown.preset.split(".")[0]].title;
    const instead = shown.preset === state.preset ? "others are made of them" : `those of “${title}” are shown`;
    link.refuse("points", `${catalogue[state.loss].title} takes ${needs(state.loss)}`, instead);
  }
  return shown;
}

/** Takes the parts of a link one by one, and keeps in `unread` what is wrong with them. */
function reader(text) {
  const parts = text.replace(/^#/, "").split("&").filter(Boolean);
  const given = new Map(parts.map((part) => part.split(/=(.*)/s).slice(0, 2)));
  const taken = new Set();
  const unread = [];
  const refuse = (key, why, instead) => {
    const part = [key, given.get(key)].filter((one) => one !== undefined).join("=");
    unread.push(`${part.length > LONGEST ? `${part.slice(0, LONGEST - 1)}…` : part} (${why}), ${instead}`);
  };
  const take = (key, accept, fallback, why, instead) => {
    taken.add(key);
    if (!given.has(key)) return fallback;
    const value = accept(given.get(key) ?? "");
    if (value === undefined) refuse(key, why, instead);
    return value ?? fallback;
  };
  const finish = () => {
    for (const key of given.keys()) if (!taken.has(key)) refuse(key, "there is no such setting", "it is left out");
  };
  return { take, refuse, finish, unread };
}

const LONGEST = 40;

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
