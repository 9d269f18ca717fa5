// What a loss tends to at both ends of the temperature, for the rows that it is given.
//
//   low       lim T L as T -> 0: L itself may diverge              claim WL-13, nceref derive tau-zero
//   high      lim L as T -> infinity                                claim WL-16, nceref derive tau-infinity
//   room      low <= T L <= low + T room, at every T > 0
//   slope, square   0 <= L - (high + slope / T) <= square / T^2     Jensen and Hoeffding
// The last two lines hold for a log-sum-exp less a similarity; other losses have the two limits alone.

import { logSumExp, softplus } from "./losses.js";

const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;

/** Limits of log sum_j e^(s_j/T) - (mean over positives of s_p)/T, averaged over anchors. */
function ofSoftmax({ cosines, probabilities, positives }) {
  const rows = cosines.map((s, i) => {
    const seen = s.filter((_, j) => probabilities[i][j] !== null);
    const [top, bottom] = [Math.max(...seen), Math.min(...seen)];
    const own = mean(positives[i].map((p) => s[p]));
    return [top - own, Math.log(seen.length), mean(seen) - own, (top - bottom) ** 2 / 8];
  });
  const counts = new Set(probabilities.map((row) => row.filter((p) => p !== null).length));
  const [low, high, slope, square] = [0, 1, 2, 3].map((part) => mean(rows.map((row) => row[part])));
  return { low, high, room: high, slope, square, count: counts.size === 1 ? [...counts][0] : null };
}

/** Only what is divided by the temperature grows or fades: the scores of the centers stay. */
function ofPaco({ cosines, scores, positives }, { labels, alpha }) {
  const n = cosines.length;
  const rows = cosines.map((s, i) => {
    const own = positives[i].filter((p) => p < n);
    const mass = 1 + alpha * own.length;
    const top = Math.max(0, ...s.filter((_, j) => j !== i));
    const everything = logSumExp([...Array(n - 1).fill(0), ...scores[i]]);
    return [mass * top - alpha * own.reduce((a, p) => a + s[p], 0), mass * everything - scores[i][labels[i]]];
  });
  return { low: mean(rows.map((row) => row[0])), high: mean(rows.map((row) => row[1])) };
}

/** Every pair by itself: T softplus((s + T b)/T) -> max(s, 0), and softplus(b) without any similarity. */
function ofSigmoid({ cosines }, { logit_bias }) {
  const low = cosines.map((s, i) => s.reduce((a, x, j) => a + Math.max(j === i ? -x : x, 0), 0));
  return { low: mean(low), high: softplus(-logit_bias) + (cosines.length - 1) * softplus(logit_bias) };
}

/** Limits of a loss by name; `result` is what it returned for `inputs`. Null for the simple loss: it has no temperature. */
export function limits(name, result, inputs) {
  if (name === "simple") return null;
  return ({ paco: ofPaco, siglip: ofSigmoid }[name] ?? ofSoftmax)(result, inputs);
}
