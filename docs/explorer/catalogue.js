// The losses as the page offers them: which points they take, which sliders they have, and how they are written.

const RAD = Math.PI / 180;
const xy = (angle, length = 1) => [length * Math.cos(angle * RAD), length * Math.sin(angle * RAD)];

// Roles of a point: q and k the two members of a pair, n a negative, s a sample with a label, c the center of a label.
const PAIRS = { queries: "q", keys: "k" };
const VIEWS = { z1: "q", z2: "k" };

const frac = (over, under) => `<mfrac><mrow>${over}</mrow><mrow>${under}</mrow></mfrac>`;
const sub = (base, index) => `<msub><mi>${base}</mi><mrow>${index}</mrow></msub>`;
const s = (index) => sub("s", index);
const i = "<mi>i</mi>",
  j = "<mi>j</mi>",
  a = "<mi>a</mi>",
  p = "<mi>p</mi>";
const op = (sign) => `<mo>${sign}</mo>`;
const exp = (power) => `<msup><mi>e</mi><mrow>${power}</mrow></msup>`;
const over = (index) => `${s(index)}<mo stretchy="false">/</mo><mi>τ</mi>`;
const scaled = (k) => `${sub("c", `<mi>${k}</mi>`)}<mo stretchy="false">/</mo><mi>τ</mi>`;
const sum = (index) => `<munder><mo>∑</mo><mrow>${index}</mrow></munder>`;
const log = `<mi>log</mi><mo>&#8289;</mo>`;
const math = (right) => `<math display="block"><mrow>${sub("L", i)}${op("=")}${right}</mrow></math>`;
const no = (left, right) => `${left}<mo>≠</mo>${right}`;
const minus = op("−");

/**
 * arrays: rows by argument and the role of their points; controls: sliders beside the temperature;
 * anchors, candidates: roles along the rows and columns of the probabilities; shows: what these numbers are.
 */
export const catalogue = {
  info_nce: {
    title: "InfoNCE",
    summary: "Each anchor must pick its own partner among all candidates.",
    formula: math(minus + log + frac(exp(over(i + i)), sum(j) + exp(over(i + j)))),
    arrays: PAIRS,
    anchors: "q",
    candidates: "k",
    controls: ["temperature"],
    shows: "Softmax over the candidates",
  },
  nt_xent: {
    title: "NT-Xent (SimCLR)",
    summary: "Every point must pick its partner among all other points.",
    formula: math(minus + log + frac(exp(over(i + p)), sum(no(j, i)) + exp(over(i + j)))),
    members: ["first view", "second view"],
    arrays: VIEWS,
    anchors: "qk",
    candidates: "qk",
    controls: ["temperature"],
    shows: "Softmax over all other points",
  },
  supcon_out: {
    title: "SupCon",
    summary: "Every point must pick the points of its color among all others.",
    formula: math(
      minus +
        frac("<mn>1</mn>", `<mo>|</mo><mi>P</mi><mo>|</mo>`) +
        sum(`${p}<mo>∈</mo><mi>P</mi>`) +
        log +
        frac(exp(over(i + p)), sum(no(a, i)) + exp(over(i + a))),
    ),
    arrays: { embeddings: "s" },
    labels: "labels",
    anchors: "s",
    candidates: "s",
    controls: ["temperature"],
    shows: "Softmax over all other points",
  },
  simple: {
    title: "Simple loss",
    summary: "The partner pulls; all others push, near or far, with one constant weight. There is no temperature.",
    formula: math(
      minus + s(i + i) + op("+") + frac("<mn>1</mn>", "<mi>N</mi><mo>−</mo><mn>1</mn>") + sum(no(j, i)) + s(i + j),
    ),
    arrays: PAIRS,
    anchors: "q",
    candidates: "k",
    controls: [],
    shows: "Weight of every negative",
  },
  dcl: {
    title: "DCL (decoupled)",
    summary: "NT-Xent without the partner in the sum: its pull is 1/τ however near it is.",
    formula: math(
      minus +
        frac(s(i + p), "<mi>τ</mi>") +
        op("+") +
        log +
        sum(`${j}<mo>∉</mo><mo stretchy="false">{</mo>${i}<mo>,</mo>${p}<mo stretchy="false">}</mo>`) +
        exp(over(i + j)),
    ),
    members: ["first view", "second view"],
    arrays: VIEWS,
    anchors: "qk",
    candidates: "qk",
    controls: ["temperature"],
    shows: "Softmax over the negatives",
  },
  hard_contrastive: {
    title: "Hard contrastive",
    summary: "InfoNCE over the nearest half of the negatives; the others are not seen at all.",
    formula: math(
      minus +
        log +
        frac(
          exp(over(i + i)),
          exp(over(i + i)) + op("+") + sum(`${j}<mspace width="0.2em"/><mtext>hardest</mtext>`) + exp(over(i + j)),
        ),
    ),
    arrays: PAIRS,
    anchors: "q",
    candidates: "k",
    controls: ["temperature"],
    fixed: { fraction: 0.5 },
    shows: "Softmax over the partner and the hardest half",
  },
  arcface: {
    title: "ArcFace",
    summary: "Each point must pick the weight of its class (on the outer ring) with m radians to spare. Scale: 1/τ.",
    formula: math(
      minus +
        log +
        frac(exp(scaled("y")), sum("<mi>k</mi>") + exp(scaled("k"))) +
        `<mo>,</mo><mspace width="0.6em"/>` +
        `${sub("c", "<mi>y</mi>")}<mo>=</mo><mi>cos</mi><mo stretchy="false">(</mo><mi>θ</mi><mo>+</mo><mi>m</mi><mo stretchy="false">)</mo>`,
    ),
    arrays: { embeddings: "s", class_weights: "c" },
    labels: "target",
    anchors: "s",
    candidates: "c",
    controls: ["temperature", "margin"],
    shows: "Softmax over the classes, margin included",
  },
  paco: {
    title: "PaCo",
    summary: "SupCon with weight α on each positive, and a learnable center of each class (outer ring) with weight 1.",
    formula: math(
      minus +
        log +
        sub("P", sub("c", "<mi>y</mi>")) +
        minus +
        "<mi>α</mi>" +
        sum(`${p}<mo>∈</mo><mi>P</mi>`) +
        log +
        sub("P", p),
    ),
    arrays: { embeddings: "s", centers: "c" },
    labels: "labels",
    anchors: "s",
    candidates: "sc",
    controls: ["temperature", "alpha", "length"],
    shows: "Softmax over all other points and the centers",
  },
  siglip: {
    title: "SigLIP",
    summary: "Every pair is a question by itself: do they match? No candidate competes with another.",
    formula: math(
      minus +
        sum(j) +
        log +
        `<mi>σ</mi><mo stretchy="false">(</mo><mo>±</mo><mo stretchy="false">(</mo>${over(i + j)}<mo>+</mo><mi>b</mi><mo stretchy="false">)</mo><mo stretchy="false">)</mo>`,
    ),
    members: ["image", "text"],
    arrays: { image: "q", text: "k" },
    anchors: "q",
    candidates: "k",
    controls: ["temperature", "bias"],
    shows: "Sigmoid of every pair",
  },
};

/** Positions of the points that have one of these roles, in the order of the roles, then of the points. */
export const withRoles = (points, roles) =>
  [...roles].flatMap((role) => points.flatMap((point, at) => (point.role === role ? [at] : [])));

/** Arguments of a loss, under the names of the package; `temperature` may differ from that of the state. */
export function inputs(state, temperature = state.temperature) {
  const { arrays, labels, fixed } = catalogue[state.loss];
  const rows = (role) =>
    withRoles(state.points, role).map((at) => xy(state.points[at].angle, role === "c" ? centerLength(state) : 1));
  const given = Object.fromEntries(Object.entries(arrays).map(([name, role]) => [name, rows(role)]));
  if (labels) given[labels] = withRoles(state.points, "s").map((at) => state.points[at].label);
  if (state.loss === "info_nce" && has(state, "n")) given.negatives = rows("n");
  return { ...given, ...fixed, ...scalars(state, temperature) };
}

/** Centers of PaCo have a length; the weights of ArcFace are scaled to 1. */
export const centerLength = (state) => (state.loss === "paco" ? state.length : 1);

const has = (state, role) => state.points.some((point) => point.role === role);

function scalars({ loss, alpha, margin, bias }, temperature) {
  switch (loss) {
    case "simple":
      return {};
    case "arcface":
      return { margin, scale: 1 / temperature };
    case "siglip":
      return { logit_scale: 1 / temperature, logit_bias: bias };
    case "paco":
      return { alpha, temperature };
    default:
      return { temperature };
  }
}

/** Candidates of the anchors as positions of points: one list, the columns of the probabilities. */
export function candidates(state) {
  const { candidates } = catalogue[state.loss];
  const negatives = state.loss === "info_nce" ? withRoles(state.points, "n") : [];
  return [...withRoles(state.points, candidates), ...negatives];
}

export const anchors = (state) => withRoles(state.points, catalogue[state.loss].anchors);

/** For every point the derivative of the value by its angle, in radians; and by the length of the centers. */
export function slopes(state, grads) {
  const { arrays } = catalogue[state.loss];
  const named = { ...arrays, ...(grads.negatives ? { negatives: "n" } : {}) };
  const byAngle = state.points.map(() => 0);
  let byLength = 0;
  for (const [name, role] of Object.entries(named)) {
    withRoles(state.points, role).forEach((at, row) => {
      const [x, y] = xy(state.points[at].angle);
      const [g_x, g_y] = grads[name][row];
      byAngle[at] = (x * g_y - y * g_x) * (role === "c" ? centerLength(state) : 1);
      if (role === "c" && state.loss === "paco") byLength += x * g_x + y * g_y;
    });
  }
  return { byAngle, byLength };
}
