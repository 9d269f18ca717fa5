// The circle: points that are dragged or moved by keys, forces as arrows, and what the chosen anchor looks at.

import { glyph, named, svg } from "./shapes.js";
import { wrapped } from "./model.js";

const RADIUS = 100,
  RING = 120;
const LONGEST = 62,
  SHORTEST = 1.5,
  UNIT = 32;
// More points than that are drawn small, and the keys N and P go from one to the next in place of Tab.
const FEW = 24;

const radius = ({ role }) => (role === "c" ? RING : RADIUS);
const place = (angle, r) => [r * Math.cos((angle * Math.PI) / 180), -r * Math.sin((angle * Math.PI) / 180)];
const fixed = (x) => x.toFixed(2);

/** Length of an arrow: the square root of force times anchors shows weak forces too; of many points it is short. */
const reach = (force, count) => Math.min(LONGEST, UNIT * Math.sqrt(Math.abs(force) * count)) / (count > FEW ? 2.5 : 1);

/**
 * Draws into an SVG element. `moved(at, angle)` and `chosen(at)` are called when the reader does something.
 * Returns the function that draws a state with its evaluation.
 */
export function circle(element, { moved, chosen }) {
  const layers = ["frame", "chords", "arrows", "points"].map((name) => element.appendChild(svg("g", { class: name })));
  const [frame, chords, arrows, points] = layers;
  frame.append(svg("circle", { r: RADIUS, class: "rim" }), ...ticks());
  let nodes = [],
    shape = "",
    now = null;

  const angleOf = (event) => {
    const inverse = element.getScreenCTM().inverse();
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(inverse);
    return Math.round(((Math.atan2(-y, x) * 180) / Math.PI) * 10) / 10;
  };

  const node = (point, at, count) => {
    const few = count <= FEW;
    const group = svg("g", {
      class: `point label-${point.label} role-${point.role}`,
      role: "slider",
      "aria-valuemin": -180,
      "aria-valuemax": 180,
      "aria-label": named(point),
    });
    group.append(svg("circle", { r: few ? 18 : 5, class: "touch" }), svg("circle", { r: few ? 13 : 7, class: "halo" }));
    group.append(...glyph(point, count <= 12 ? 7 : few ? 5.5 : 2.8));
    group.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      event.preventDefault();
      group.setPointerCapture(event.pointerId);
      group.focus({ preventScroll: true });
      chosen(at);
    });
    // A finger on a point drags it and does not scroll the page; `touch-action` has no effect within an SVG.
    group.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    group.addEventListener("pointermove", (event) => {
      if (group.hasPointerCapture(event.pointerId)) moved(at, angleOf(event));
    });
    group.addEventListener("focus", () => chosen(at));
    group.addEventListener("keydown", (event) => pressed(event, at));
    return group;
  };

  const pressed = (event, at) => {
    const count = now.points.length;
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    const next = { n: 1, N: 1, p: -1, P: -1 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      event.preventDefault();
      const step = steps[event.key] * (event.shiftKey ? 10 : 1);
      moved(at, wrapped(Math.round((now.points[at].angle + step) * 10) / 10));
    } else if (next) {
      event.preventDefault();
      nodes[(at + next + count) % count].focus();
    }
  };

  const built = (state) => {
    const wanted = state.points.map(({ role, label }) => role + label).join();
    if (wanted === shape) return;
    shape = wanted;
    const few = state.points.length <= FEW;
    const focused = nodes.indexOf(document.activeElement);
    nodes = state.points.map((point, at) => node(point, at, state.points.length));
    // Outlined partners lie below: an anchor that meets its own is seen within it.
    const below = nodes.filter((_, at) => state.points[at].role === "k");
    points.replaceChildren(...below, ...nodes.filter((one) => !below.includes(one)));
    element.classList.toggle("many", !few);
    if (focused >= 0) nodes[Math.min(focused, nodes.length - 1)].focus();
  };

  return (state, model) => {
    now = state;
    built(state);
    const count = model.anchors.length;
    state.points.forEach((point, at) => {
      const [x, y] = place(point.angle, radius(point));
      nodes[at].setAttribute("transform", `translate(${fixed(x)} ${fixed(y)})`);
      nodes[at].setAttribute("tabindex", state.points.length <= FEW || at === state.at ? 0 : -1);
      nodes[at].setAttribute("aria-valuenow", point.angle.toFixed(1));
      nodes[at].setAttribute("aria-valuetext", `${point.angle.toFixed(1)} degrees, ${forceInWords(model.forces[at])}`);
      nodes[at].classList.toggle("chosen", at === state.at);
    });
    arrows.replaceChildren(...state.points.flatMap((point, at) => arrow(point, model.forces[at], count)));
    chords.replaceChildren(...spokes(state), ...looks(state, model));
  };
}

function forceInWords(force) {
  if (Math.abs(force) < 1e-12) return "no force";
  return `force ${Math.abs(force).toPrecision(3)} ${force > 0 ? "counterclockwise" : "clockwise"}`;
}

const ticks = () =>
  Array.from({ length: 12 }, (_, i) => {
    const [[x1, y1], [x2, y2]] = [place(30 * i, 97), place(30 * i, 100)];
    return svg("line", { x1, y1, x2, y2, class: "tick" });
  });

/** A tangential arrow from a point, in its color. */
function arrow(point, force, count) {
  const length = reach(force, count);
  if (!(length > SHORTEST)) return [];
  const [x, y] = place(point.angle, radius(point));
  const turn = ((point.angle + (force > 0 ? 90 : -90)) * Math.PI) / 180;
  const [u, v] = [Math.cos(turn), -Math.sin(turn)];
  const head = Math.min(count > FEW ? 4 : 7, 2 + length / 4);
  const at = (along, aside) => `${fixed(x + along * u - aside * v)},${fixed(y + along * v + aside * u)}`;
  const tip = [at(length, 0), at(length - head, head / 2), at(length - head, -head / 2)];
  return [
    svg("path", { d: `M${at(0, 0)}L${at(length - head * 0.6, 0)}`, class: `shaft label-${point.label}` }),
    svg("path", { d: `M${tip.join("L")}z`, class: `head label-${point.label}` }),
  ];
}

/** From the circle to a center, which lies on a ring of its own so that it hides no sample. */
const spokes = ({ points }) =>
  points
    .filter(({ role }) => role === "c")
    .map(({ angle, label }) => {
      const [[x1, y1], [x2, y2]] = [place(angle, RADIUS), place(angle, RING - 8)];
      return svg("line", { x1, y1, x2, y2, class: `spoke label-${label}` });
    });

/** Chords from the chosen anchor to its candidates, as wide as they are probable. */
function looks(state, model) {
  const row = model.anchors.indexOf(anchorOf(state, model));
  const from = state.points[model.anchors[row]];
  const [x1, y1] = place(from.angle, RADIUS);
  return model.candidates.flatMap((at, column) => {
    const p = model.probabilities[row][column];
    if (p === null || p < 5e-4) return [];
    const to = state.points[at];
    const [x2, y2] = place(to.angle, radius(to));
    const kind = to.label === from.label ? `own label-${to.label}` : "other";
    const drawn = { "stroke-width": fixed(0.5 + 5 * p), opacity: fixed(0.25 + 0.6 * p) };
    return [svg("line", { x1, y1, x2, y2, class: `chord ${kind}`, ...drawn })];
  });
}

/** The anchor that the panels show: the chosen point, or the first anchor of its color, or the first. */
export function anchorOf({ points, at }, { anchors }) {
  if (anchors.includes(at)) return at;
  return anchors.find((anchor) => points[anchor].label === points[at].label) ?? anchors[0];
}
