// What is said of a scene: the text of its preset while that is what is shown; else also what has changed.

import { catalogue } from "./catalogue.js";
import { presets } from "./presets.js";
import { numbers, opened, suited, written } from "./state.js";

const shape = (points) => points.map(({ role, label }) => role + label).join();
const presetOf = ({ preset }) => presets[preset.split(".")[0]];

/** Whether the points are those of the preset, be they moved: what is published is about them. */
export const ownPoints = (state) => shape(state.points) === shape(suited(opened(state.preset), state.loss).points);

/** Title, text and source of the scene. `origin`: the points before a run, which moves them as the text says. */
export function caption(state, origin = state.points) {
  const preset = presetOf(state);
  const { title, look, source = "" } = preset;
  const base = opened(state.preset);
  const named = catalogue[state.loss].title;
  if (!ownPoints(state)) {
    return { title: "Points of your own", look: `Under ${named}, in place of the scene “${title}”.`, source: "" };
  }
  if (state.loss !== base.loss && !preset.alike?.includes(state.loss)) {
    const equal = base.points.some(({ role }) => role === "n");
    const negatives = equal ? " Each of its negatives is a pair of two equal views here." : "";
    return { title, look: `Its points, under ${named}.${negatives}`, source: "" };
  }
  const changes = (preset.about ?? [])
    .filter((name) => state[name] !== base[name])
    .map((name) => `${numbers[name].sign} is ${Number(state[name].toPrecision(4))}, in the scene ${base[name]}`);
  if (written(origin) !== written(suited(base, state.loss).points)) changes.push("points have been moved");
  const before = changes.length ? `${sentence(changes.join("; "))}. Of the scene as it was: ` : "";
  return { title, look: before + look, source };
}

/** With a capital, unless it begins with the sign of a number. */
const sentence = (text) => (text.startsWith("points") ? text[0].toUpperCase() + text.slice(1) : text);
