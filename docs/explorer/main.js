// The page: one state, drawn anew after every change, and kept in the address.

import { caption } from "./caption.js";
import { catalogue } from "./catalogue.js";
import { circle } from "./circle.js";
import { decode, encode } from "./link.js";
import { evaluate, stepped, valueAt } from "./model.js";
import * as panels from "./panels.js";
import { presets } from "./presets.js";
import { html, linked } from "./shapes.js";
import { exchanged, needs, numbers, opened, suited } from "./state.js";

const find = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");
const AT_ONCE = 200;
const SETTLED = 1e-9;

let state = opened("start");
let model = null;
let run = { playing: false, steps: 0, origin: null };
let curve = { key: "", data: [] },
  job = null;

const draw = circle(find("circle"), { moved: move, chosen: choose });

// Changes.

/** Take a state and show it; what is changed by hand ends a run. */
function set(changes, { byHand = true } = {}) {
  state = { ...state, ...changes };
  if (byHand) {
    run = { playing: false, steps: 0, origin: null };
    find("unread").textContent = "";
  }
  show();
}

function open(name) {
  const { title, look } = presets[name.split(".")[0]];
  news = `${title}. ${look} `;
  set({ ...opened(name) });
}

function move(at, angle) {
  if (angle === state.points[at].angle) return;
  set({ points: state.points.map((point, i) => (i === at ? { ...point, angle } : point)), at });
}

function choose(at) {
  if (at !== state.at) set({ at }, { byHand: false });
}

function choosesLoss(loss) {
  const { points, preset } = exchanged(state, loss);
  const { title } = catalogue[loss];
  if (preset !== state.preset) say(`${title} takes ${needs(loss)}: those of “${presets[preset].title}” are shown.`);
  set({ loss, points, preset, at: Math.min(state.at, points.length - 1) });
}

// Descent.

function step(count = 1) {
  run.origin ??= { points: state.points, length: state.length };
  let taken = 0,
    now = model;
  while (taken < count) {
    const { forces, byLength } = now;
    const largest = Math.max(...forces.map(Math.abs), state.loss === "paco" ? Math.abs(byLength) : 0);
    if (largest < SETTLED) break;
    state = stepped(state, now);
    now = evaluate(state);
    taken += 1;
  }
  run.steps += taken;
  if (taken < count) {
    run.playing = false;
    say(run.steps === 0 ? "No force: nothing moves." : `Settled after ${run.steps} steps.`);
  }
  show(now);
}

function play() {
  if (still.matches) {
    step(AT_ONCE);
    return;
  }
  run.playing = !run.playing;
  if (run.playing) requestAnimationFrame(frame);
  show();
}

function frame() {
  if (!run.playing) return;
  step();
  requestAnimationFrame(frame);
}

function reset() {
  const preset = opened(state.preset);
  const { points, length } = run.origin ?? { ...preset, points: suited(preset, state.loss).points };
  set({ points, length, at: Math.min(state.at, points.length - 1) });
}

// What is shown.

function show(evaluated = evaluate(state)) {
  model = evaluated;
  draw(state, model);
  panels.key(find("key"), state);
  find("value").textContent = panels.shown(model.value);
  find("value").dataset.value = model.value;
  panels.force(find("force"), state, model);
  find("steps").textContent = run.steps ? `${run.steps} steps` : "";
  find("play").textContent = still.matches ? `Run ${AT_ONCE} steps` : run.playing ? "Pause" : "Play";
  find("play").classList.toggle("playing", run.playing);
  showPreset();
  showControls();
  keepingFocus(find("probabilities"), (panel) => panels.probabilities(panel, state, model, choose));
  keepingFocus(find("published"), (panel) =>
    panels.published(panel, state, model, { open, setTemperature: (temperature) => set({ temperature }) }),
  );
  showCurve();
  panels.limitsInWords(find("limits"), model, state);
  later();
}

function showPreset() {
  const [name] = state.preset.split(".");
  const { title, look, source } = caption(state, run.origin?.points);
  const { summary, formula } = catalogue[state.loss];
  for (const button of find("presets").children) {
    button.setAttribute("aria-pressed", String(button.dataset.preset === name));
  }
  find("preset-title").textContent = title;
  find("look").textContent = look;
  find("unit").textContent = state.loss === "simple" ? "" : "nats";
  find("source").replaceChildren(...linked(source));
  find("loss").value = state.loss;
  find("summary").textContent = summary;
  if (find("formula").dataset.loss !== state.loss) {
    find("formula").dataset.loss = state.loss;
    find("formula").innerHTML = formula;
  }
}

function showControls() {
  for (const [name, { log }] of Object.entries(numbers)) {
    const control = document.querySelector(`[data-control=${name}]`);
    control.hidden = name !== "rate" && !model.controls.includes(name);
    const [exact, range] = control.querySelectorAll("input");
    range.value = log ? Math.log10(state[name]) : state[name];
    range.setAttribute("aria-valuetext", String(Number(state[name].toPrecision(4))));
    if (document.activeElement !== exact) exact.value = Number(state[name].toPrecision(4));
  }
  for (const input of document.querySelectorAll("[name=view]")) input.checked = input.value === state.view;
}

/** The curve is computed when its loss or points have changed: at once, or of many points between frames. */
function showCurve() {
  const { temperature, at, view, rate, preset, ...rest } = state;
  const key = JSON.stringify(rest);
  const many = state.points.length > panels.MANY;
  if (key !== curve.key && !(job && many)) {
    job = { key, state, data: [], left: panels.temperatures(state) };
    if (many) setTimeout(work);
    else work(Infinity);
    if (!many) return;
  }
  if (curve.data.length) panels.curve(find("curve"), state, model, curve.data);
}

/** Some temperatures of the curve. What has changed in the meantime waits until this one is drawn. */
function work(most = 2) {
  if (!job) return;
  for (const temperature of job.left.splice(0, most)) job.data.push([temperature, valueAt(job.state, temperature)]);
  if (job.left.length) {
    setTimeout(work, 4);
    return;
  }
  curve = job;
  job = null;
  showCurve();
}

/** Redraw a panel; the button in it that had the focus has it again. */
function keepingFocus(panel, redraw) {
  const at = [...panel.querySelectorAll("button")].indexOf(document.activeElement);
  redraw(panel);
  if (at >= 0) panel.querySelectorAll("button")[at]?.focus({ preventScroll: true });
}

// The address, and what a screen reader is told: both after a pause.

let pending = 0,
  news = "",
  erasing = 0;

function later() {
  clearTimeout(pending);
  pending = setTimeout(() => {
    const text = `#${encode(state)}`;
    if (text !== location.hash) history.replaceState(null, "", text);
    if (!run.playing) find("live").textContent = `${news}Loss ${panels.shown(model.value)}`;
    news = "";
  }, 150);
}

function say(text) {
  find("status").textContent = text;
  clearTimeout(erasing);
  erasing = setTimeout(() => (find("status").textContent = ""), 6000);
}

function follow() {
  const { state: given, unread } = decode(location.hash);
  set(given);
  find("unread").textContent = unread.length ? `Of the link this could not be read: ${unread.join("; ")}.` : "";
}

async function copy() {
  history.replaceState(null, "", `#${encode(state)}`);
  try {
    await navigator.clipboard.writeText(location.href);
    say("Link copied.");
  } catch {
    say("The address of this page is the link; copy it from there.");
  }
}

// Controls.

function control(name) {
  const { word, sign, low, high, log } = numbers[name];
  const [from, to] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
  const range = html("input", { type: "range", id: name, min: from, max: to, step: 0.01 });
  const typed = { type: "number", id: `${name}-exact`, "aria-label": `${word}, exact` };
  const exact = html("input", { ...typed, min: low, max: high, step: "any" });
  range.addEventListener("input", () => {
    const value = log ? 10 ** Number(range.value) : Number(range.value);
    set({ [name]: Math.min(high, Math.max(low, Number(value.toPrecision(3)))) }, { byHand: name !== "rate" });
  });
  exact.addEventListener("change", () => {
    const value = Number(exact.value);
    if (exact.value !== "" && value >= low && value <= high) set({ [name]: value }, { byHand: name !== "rate" });
    else say(`${word} is a number from ${low} to ${high}.`);
    exact.value = state[name];
  });
  const title = html("label", { for: name }, word, sign ? " " : "", html("i", {}, sign));
  return html("div", { class: "control", "data-control": name }, title, exact, range);
}

function build() {
  for (const [name, { title }] of Object.entries(presets)) {
    const button = html("button", { type: "button", "data-preset": name, "aria-pressed": "false" }, title);
    button.addEventListener("click", () => open(name));
    find("presets").append(button);
  }
  for (const [name, { title }] of Object.entries(catalogue)) {
    find("loss").append(html("option", { value: name }, title));
  }
  find("sliders").append(
    ...Object.keys(numbers)
      .filter((name) => name !== "rate")
      .map(control),
  );
  find("pace").append(control("rate"));
  find("loss").addEventListener("change", () => choosesLoss(find("loss").value));
  find("play").addEventListener("click", play);
  find("step").addEventListener("click", () => {
    run.playing = false;
    step();
  });
  find("reset").addEventListener("click", reset);
  find("copy").addEventListener("click", copy);
  for (const input of document.querySelectorAll("[name=view]")) {
    input.addEventListener("change", () => set({ view: input.value }, { byHand: false }));
  }
  find("curve").addEventListener("pointerdown", (event) => find("curve").setPointerCapture(event.pointerId));
  for (const kind of ["pointerdown", "pointermove"]) find("curve").addEventListener(kind, drawnTo);
  still.addEventListener("change", () => show());
  addEventListener("hashchange", () => location.hash !== `#${encode(state)}` && follow());
}

/** Whoever drags along the curve sets the temperature. */
function drawnTo(event) {
  if (!find("curve").hasPointerCapture(event.pointerId) || !model.limits) return;
  const { x } = new DOMPoint(event.clientX, event.clientY).matrixTransform(find("curve").getScreenCTM().inverse());
  set({ temperature: Number(panels.temperatureAt(x).toPrecision(3)) });
}

// On the front page there are the scenes and the circle alone.
document.documentElement.classList.toggle("circle", location.search === "?circle");
build();
follow();
document.documentElement.classList.add("ready");
