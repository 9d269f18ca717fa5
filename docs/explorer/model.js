// What the page shows of a state: value, probabilities, forces, limits; and one step of descent.

import { anchors, candidates, catalogue, inputs, slopes } from "./catalogue.js";
import { limits } from "./limits.js";
import { losses } from "./losses.js";

/** Everything that is read from one evaluation. Forces are minus the derivative of the value by the angle (radians). */
export function evaluate(state) {
  const given = inputs(state);
  const result = losses[state.loss](given);
  const { byAngle, byLength } = slopes(state, result.grads);
  return {
    value: result.value,
    probabilities: result.probabilities,
    anchors: anchors(state),
    candidates: candidates(state),
    forces: byAngle.map((g) => -g),
    byLength,
    limits: limits(state.loss, result, given),
    controls: catalogue[state.loss].controls,
  };
}

/** The value at other temperatures, for the curve. */
export const valueAt = (state, temperature) => losses[state.loss](inputs(state, temperature)).value;

/** One step of gradient descent on the circle: every point turns by rate times its force. Centers of PaCo also grow. */
export function stepped(state, { forces, byLength }) {
  const points = state.points.map((point, at) => ({ ...point, angle: turned(point.angle, state.rate * forces[at]) }));
  const length =
    state.loss === "paco" ? Math.min(Math.max(state.length - state.rate * byLength, 0.1), 20) : state.length;
  return { ...state, points, length };
}

const turned = (angle, radians) => wrapped(angle + (radians * 180) / Math.PI);

/** From -180 up to 180 degrees. An angle within is kept to the last digit. */
export const wrapped = (angle) =>
  angle >= -180 && angle < 180 ? angle : angle - 360 * Math.floor((angle + 180) / 360);

/** Mean cosines within and between colors, and the uniformity log E exp(-2 |x - y|^2), of the samples. */
export function spread({ points }) {
  const samples = points.filter(({ role }) => role === "s");
  const sums = { within: [0, 0], between: [0, 0], uniformity: [0, 0] };
  samples.forEach((x, at) =>
    samples.slice(at + 1).forEach((y) => {
      const cosine = Math.cos(((x.angle - y.angle) * Math.PI) / 180);
      for (const [name, value] of [
        [x.label === y.label ? "within" : "between", cosine],
        ["uniformity", Math.exp(4 * cosine - 4)],
      ]) {
        sums[name][0] += value;
        sums[name][1] += 1;
      }
    }),
  );
  const [within, between, potential] = Object.values(sums).map(([total, count]) => total / count);
  return { within, between, uniformity: Math.log(potential) };
}

/** Of PaCo, means over the anchors: the probability of all centers, and that of one positive, or null. */
export function shares(state, { probabilities, anchors, candidates }) {
  const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;
  const { points } = state;
  const centers = probabilities.map((row) =>
    row.reduce((sum, p, j) => sum + (points[candidates[j]].role === "c" ? p : 0), 0),
  );
  const positives = probabilities.map((row, i) =>
    row.filter(
      (p, j) =>
        p !== null && points[candidates[j]].role === "s" && points[candidates[j]].label === points[anchors[i]].label,
    ),
  );
  return {
    centers: mean(centers),
    positive: positives.some((own) => own.length) ? mean(positives.flat()) : null,
    positives: mean(positives.map((own) => own.length)),
    even: positives.every((own) => own.length === positives[0].length),
  };
}
