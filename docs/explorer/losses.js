// Nine contrastive losses with hand-derived gradients. Arguments and results have the names of the Python package.
//
// A function takes rows (arrays of numbers, any length) and returns
//   value          mean over the anchors
//   cosines        similarity of anchor i and candidate j, before the temperature
//   probabilities  what the loss makes of them, anchor by candidate; null where a pair takes no part
//   positives      for each anchor the positions of its positives
//   grads          gradients of the value by every array of rows, through their normalization

const dot = (x, y) => x.reduce((total, x_k, k) => total + x_k * y[k], 0);
const total = (numbers) => numbers.reduce((a, b) => a + b, 0);
const range = (n) => Array.from({ length: n }, (_, i) => i);
const pick = (numbers, positions) => positions.map((j) => numbers[j]);
const blank = (n) => Array(n).fill(0);

/** log sum exp, shifted by the largest: no exponential overflows. Of nothing: -infinity. */
export function logSumExp(numbers) {
  const top = Math.max(...numbers);
  if (top === -Infinity) return top;
  return top + Math.log(total(numbers.map((x) => Math.exp(x - top))));
}

/** log(1 + e^x), without overflow and with all digits where it is tiny. */
export const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

/** 1 / (1 + e^-x), likewise. */
export const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));

/** Rows scaled to length 1, and the way back: the gradient by a row is tangential, divided by its length. */
function normalized(rows) {
  const lengths = rows.map((x) => Math.hypot(...x));
  const units = rows.map((x, i) => x.map((x_k) => x_k / lengths[i]));
  const back = (grads) =>
    grads.map((g, i) => {
      const radial = dot(g, units[i]);
      return g.map((g_k, k) => (g_k - radial * units[i][k]) / lengths[i]);
    });
  return { units, back };
}

/** Sums of rows: sum_j weights[i][j] rows[j]. */
const combined = (weights, rows) =>
  weights.map((w) => rows[0].map((_, k) => total(w.map((w_j, j) => w_j * rows[j][k]))));

const transposed = (matrix) => matrix[0].map((_, j) => matrix.map((row) => row[j]));

/** Cosines of anchors and candidates; `back` turns slopes by cosines into gradients of both. */
function compared(anchors, candidates) {
  const [a, c] = [normalized(anchors), normalized(candidates)];
  return {
    cosines: a.units.map((x) => c.units.map((y) => dot(x, y))),
    back: (slopes) => [a.back(combined(slopes, c.units)), c.back(combined(transposed(slopes), a.units))],
  };
}

const added = (left, right) => left.map((x, i) => x.map((x_k, k) => x_k + right[i][k]));

/** Mean of rows; slopes by logits become slopes by cosines when they are multiplied by d logit / d cosine. */
function averaged(parts, factor) {
  return {
    value: total(parts.map((part) => part.row)) / parts.length,
    probabilities: parts.map((part) => part.probabilities),
    positives: parts.map((part) => part.positives),
    slopes: parts.map((part) => part.slopes.map((g) => (g * factor) / parts.length)),
  };
}

const divided = (row, temperature) => row.map((s) => s / temperature);

/** -log softmax of one positive: row = log(1 + sum_j e^(l_j - l_p)), d row / d l_j = P_j, d row / d l_p = -sum_j P_j. */
function onePositive(logits, positive, negatives) {
  const others = logSumExp(pick(logits, negatives));
  const gap = others - logits[positive];
  const missed = sigmoid(gap);
  const slopes = blank(logits.length);
  const probabilities = Array(logits.length).fill(null);
  for (const j of negatives) slopes[j] = probabilities[j] = missed * Math.exp(logits[j] - others);
  // P_p - 1 would lose every digit where the positive wins.
  slopes[positive] = -missed;
  probabilities[positive] = sigmoid(-gap);
  return { row: softplus(gap), slopes, probabilities, positives: [positive] };
}

/** InfoNCE: L_i = -log(e^(s_ii/T) / sum_j e^(s_ij/T)), j over the keys, or the own one and negatives. Wang & Liu (1). */
export function info_nce({ queries, keys, negatives = null, temperature }) {
  if (negatives === null)
    return paired(queries, keys, temperature, (_, i) => range(keys.length).filter((j) => j !== i));
  const own = compared(queries, keys);
  const rest = compared(queries, negatives);
  const cosines = rest.cosines.map((row, i) => [own.cosines[i][i], ...row]);
  const columns = range(negatives.length).map((j) => j + 1);
  const result = averaged(
    cosines.map((row) => onePositive(divided(row, temperature), 0, columns)),
    1 / temperature,
  );
  const diagonal = result.slopes.map((row, i) => keys.map((_, j) => (j === i ? row[0] : 0)));
  const [byOwn, byKeys] = own.back(diagonal);
  const [byRest, byNegatives] = rest.back(result.slopes.map((row) => row.slice(1)));
  return { ...result, cosines, grads: { queries: added(byOwn, byRest), keys: byKeys, negatives: byNegatives } };
}

/** Queries against keys, where key i is the positive of query i. */
function paired(queries, keys, temperature, negatives) {
  const { cosines, back } = compared(queries, keys);
  const parts = cosines.map((row, i) => onePositive(divided(row, temperature), i, negatives(row, i)));
  const result = averaged(parts, 1 / temperature);
  const [byQueries, byKeys] = back(result.slopes);
  return { ...result, cosines, grads: { queries: byQueries, keys: byKeys } };
}

/** InfoNCE over the ceil(fraction (N - 1)) most similar negatives; of equal ones the first. Wang & Liu 2021, (8). */
export function hard_contrastive({ queries, keys, fraction, temperature }) {
  const negatives = keys.length - 1;
  const kept = Math.min(negatives, Math.max(1, Math.ceil(Number((fraction * negatives).toFixed(9)))));
  const hardest = (row, i) =>
    range(row.length)
      .filter((j) => j !== i)
      .sort((j, k) => row[k] - row[j] || j - k)
      .slice(0, kept);
  return paired(queries, keys, temperature, hardest);
}

/** The simple loss: L_i = -s_ii + sum_(j != i) s_ij / (N - 1). Wang & Liu 2021, (3). It has no temperature. */
export function simple({ queries, keys }) {
  const { cosines, back } = compared(queries, keys);
  const weight = 1 / Math.max(keys.length - 1, 1);
  const parts = cosines.map((row, i) => ({
    row: weight * total(row.filter((_, j) => j !== i)) - row[i],
    slopes: row.map((_, j) => (j === i ? -1 : weight)),
    probabilities: row.map((_, j) => (j === i ? null : weight)),
    positives: [i],
  }));
  const result = averaged(parts, 1);
  const [byQueries, byKeys] = back(result.slopes);
  return { ...result, cosines, grads: { queries: byQueries, keys: byKeys } };
}

/** All rows of two views against all others; the positive of a row is its other view. */
function twoViews(z1, z2, temperature, row) {
  const z = [...z1, ...z2];
  const { cosines, back } = compared(z, z);
  const parts = cosines.map((s, i) => {
    const partner = (i + z1.length) % z.length;
    const negatives = range(z.length).filter((j) => j !== i && j !== partner);
    return row(divided(s, temperature), partner, negatives);
  });
  const result = averaged(parts, 1 / temperature);
  const grads = added(...back(result.slopes));
  return { ...result, cosines, grads: { z1: grads.slice(0, z1.length), z2: grads.slice(z1.length) } };
}

/** NT-Xent: L_i = -log(e^(s_ip/T) / sum_(j != i) e^(s_ij/T)) over 2N anchors, p the other view of i. SimCLR. */
export const nt_xent = ({ z1, z2, temperature }) => twoViews(z1, z2, temperature, onePositive);

/** DCL: L_i = -s_ip/T + log sum_(j not i, p) e^(s_ij/T): the pull does not fade. d L_i / d l_p = -1. */
export function dcl({ z1, z2, temperature }) {
  return twoViews(z1, z2, temperature, (logits, positive, negatives) => {
    const others = logSumExp(pick(logits, negatives));
    const slopes = blank(logits.length);
    const probabilities = Array(logits.length).fill(null);
    for (const j of negatives) slopes[j] = probabilities[j] = Math.exp(logits[j] - others);
    slopes[positive] = -1;
    return { row: others - logits[positive], slopes, probabilities, positives: [positive] };
  });
}

/**
 * Cross-entropy of a softmax against weights on the positives, W their sum: row = -sum_p w_p log P_p.
 *
 * d row / d l_k = W P_k - w_k. With E = softmax over the positives and m what the others have of the probability,
 * W P_k - w_k = (W E_k - w_k) - W E_k m, which keeps its digits where m is tiny.
 */
function weighted(logits, positives, weights, negatives) {
  const mass = total(weights);
  const peak = logSumExp(pick(logits, positives));
  const others = logSumExp(pick(logits, negatives));
  const missed = sigmoid(others - peak);
  const slopes = blank(logits.length);
  const probabilities = Array(logits.length).fill(null);
  for (const j of negatives) {
    probabilities[j] = missed * Math.exp(logits[j] - others);
    slopes[j] = mass * probabilities[j];
  }
  positives.forEach((p, at) => {
    const share = Math.exp(logits[p] - peak);
    probabilities[p] = share * sigmoid(peak - others);
    slopes[p] = mass * share - weights[at] - mass * share * missed;
  });
  const level = total(positives.map((p, at) => weights[at] * (peak - logits[p])));
  return { row: mass * softplus(others - peak) + level, slopes, probabilities, positives };
}

const isOther = (labels, i) => range(labels.length).filter((j) => labels[j] !== labels[i]);
const isSame = (labels, i) => range(labels.length).filter((j) => labels[j] === labels[i] && j !== i);

/** SupCon: L_i = -mean over positives p of log(e^(s_ip/T) / sum_(a != i) e^(s_ia/T)). Khosla et al. 2020, L_out. */
export function supcon_out({ embeddings, labels, temperature }) {
  const { cosines, back } = compared(embeddings, embeddings);
  const parts = cosines.map((row, i) => {
    const positives = isSame(labels, i);
    return weighted(
      divided(row, temperature),
      positives,
      positives.map(() => 1 / positives.length),
      isOther(labels, i),
    );
  });
  const result = averaged(parts, 1 / temperature);
  return { ...result, cosines, grads: { embeddings: added(...back(result.slopes)) } };
}

/** PaCo: -log P of the own center - alpha sum over positives of log P; centers are not normalized. Source 004. */
export function paco({ embeddings, labels, centers, alpha, temperature }) {
  const n = embeddings.length;
  const { cosines, back } = compared(embeddings, embeddings);
  const scores = embeddings.map((f) => centers.map((c) => dot(c, f)));
  const parts = cosines.map((row, i) => {
    const positives = isSame(labels, i);
    const classes = range(centers.length)
      .filter((k) => k !== labels[i])
      .map((k) => n + k);
    const logits = [...divided(row, temperature), ...scores[i]];
    const weights = [...positives.map(() => alpha), 1];
    return weighted(logits, [...positives, n + labels[i]], weights, [...isOther(labels, i), ...classes]);
  });
  const result = averaged(parts, 1);
  const contrast = added(...back(result.slopes.map((g) => g.slice(0, n).map((g_j) => g_j / temperature))));
  const byScore = result.slopes.map((g) => g.slice(n));
  const grads = {
    embeddings: added(contrast, combined(byScore, centers)),
    centers: combined(transposed(byScore), embeddings),
  };
  return { ...result, cosines, scores, grads };
}

/**
 * ArcFace: -log(e^(s psi) / (e^(s psi) + sum_(k != y) e^(s cos t_k))), psi = cos(t_y + m), d psi / d cos t_y =
 * sin(t_y + m) / sin(t_y). The sine is taken from the chords |x - w| and |x + w|: near a pole, 1 - cos^2 has no digits.
 */
export function arcface({ embeddings, class_weights, target, margin, scale }) {
  const [x, w] = [normalized(embeddings).units, normalized(class_weights).units];
  const { cosines, back } = compared(embeddings, class_weights);
  const steepness = [];
  const angular = cosines.map((row, i) => {
    const y = target[i];
    const near = total(x[i].map((x_k, k) => (x_k - w[y][k]) ** 2));
    const far = total(x[i].map((x_k, k) => (x_k + w[y][k]) ** 2));
    const [cosine, sine] = [(far - near) / 4, Math.sqrt(near * far) / 2];
    // At a pole of the circle no direction is preferred.
    steepness.push(sine > 0 ? Math.cos(margin) + (cosine / sine) * Math.sin(margin) : 0);
    return row.map((s, k) => (k === y ? cosine * Math.cos(margin) - sine * Math.sin(margin) : s));
  });
  const parts = angular.map((row, i) => {
    const negatives = range(row.length).filter((k) => k !== target[i]);
    return onePositive(
      row.map((s) => s * scale),
      target[i],
      negatives,
    );
  });
  const result = averaged(parts, scale);
  const slopes = result.slopes.map((row, i) => row.map((g, k) => (k === target[i] ? g * steepness[i] : g)));
  const [byEmbeddings, byWeights] = back(slopes);
  return { ...result, cosines: angular, grads: { embeddings: byEmbeddings, class_weights: byWeights } };
}

/** SigLIP: L_i = sum_j -log sigmoid(y_ij (t s_ij + b)), y = 1 on the diagonal, -1 elsewhere. big_vision, siglip.py. */
export function siglip({ image, text, logit_scale, logit_bias }) {
  const { cosines, back } = compared(image, text);
  const parts = cosines.map((row, i) => {
    const signs = row.map((_, j) => (j === i ? 1 : -1));
    const logits = row.map((s) => logit_scale * s + logit_bias);
    return {
      row: total(logits.map((l, j) => softplus(-signs[j] * l))),
      slopes: logits.map((l, j) => -signs[j] * sigmoid(-signs[j] * l)),
      probabilities: logits.map(sigmoid),
      positives: [i],
    };
  });
  const result = averaged(parts, logit_scale);
  const [byImage, byText] = back(result.slopes);
  return { ...result, cosines, grads: { image: byImage, text: byText } };
}

export const losses = { info_nce, nt_xent, supcon_out, simple, dcl, hard_contrastive, arcface, paco, siglip };
