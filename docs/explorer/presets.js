// The presets: published ones with their numbers, and three that show one thing each. The text of a preset (`look`) also
// holds under the losses `alike`, and no longer where one of the numbers that it is `about` is another.

import { quadrants } from "./quadrants.js";

const DEGREES = 180 / Math.PI;
const defaults = { loss: "info_nce", temperature: 0.2, alpha: 0.05, margin: 0.5, bias: -3, length: 3, rate: 0.1 };

const pair = (label, first, second) => [
  { role: "q", label, angle: first },
  { role: "k", label, angle: second },
];
const one = (role, label, angle) => ({ role, label, angle });

/** One anchor at 90 degrees; similarities become angles to it, the positive first. */
function anchorWith([positive, ...negatives]) {
  const angle = (s, side) => 90 + side * Math.acos(s) * DEGREES;
  return [
    ...pair(0, 90, angle(positive, -1)),
    ...negatives.map((s, at) => one("n", at + 1, angle(s, at === 1 ? -1 : 1))),
  ];
}

const samples = (label, ...angles) => angles.map((angle) => one("s", label, angle));

// Temperature, softmax and loss as the temperature guide prints them.
const EASY = [
  [1, ["0.3684", "0.2869", "0.1425", "0.2022"], "0.9986"],
  [0.5, ["0.4861", "0.2948", "0.0727", "0.1464"], "0.7214"],
  [0.05, ["0.9933", "6.6e-03", "5.5e-09", "6.1-06"], "0.0067"],
  [0.01, ["1.00", "1.3e-11", "5.5-42", "8.7-27"], "0"],
];
const HARD = [
  [1, ["0.2869", "0.3684", "0.1425", "0.2022"], "1.2486"],
  [0.5, ["0.2948", "0.4861", "0.0727", "0.1464"], "1.2214"],
  [0.05, ["6.6e-03", "0.9933", "5.5e-09", "6.1-06"], "5.0067"],
  [0.01, ["1.3e-11", "1.00", "5.5-42", "8.7-27"], "25"],
];

const features = (name) => quadrants[name].angles.map((angle, at) => one("s", Math.floor(at / 25), angle));
const trained = (name, temperature) => ({ title: `τ = ${temperature}`, points: features(name), temperature });

export const presets = {
  start: {
    ...defaults,
    title: "Three pairs",
    points: [...pair(0, 100, 20), ...pair(1, 140, 215), ...pair(2, 275, 330)],
    temperature: 0.5,
    alike: ["nt_xent", "dcl", "hard_contrastive", "siglip"],
    look: "A filled point and the outlined one of its color are two views of one thing. Press Play: partners meet and the pairs spread; then drag a point, or lower τ, and see who still pulls and pushes.",
  },
  easy: {
    ...defaults,
    title: "Positive nearest",
    points: anchorWith([0.5, 0.25, -0.45, -0.1]),
    temperature: 0.5,
    published: EASY,
    look: "The positive is the nearest already. Lower τ: the softmax sharpens, the loss goes to 0, and the arrows with it.",
    source: "Temperature guide, first table; claims QT-2, QT-4",
  },
  hard: {
    ...defaults,
    title: "Negative nearest",
    points: anchorWith([0.25, 0.5, -0.45, -0.1]),
    temperature: 0.5,
    published: HARD,
    look: "A negative is nearest, and at low τ only that one is pushed. The source reads from its table that the loss rises as τ falls; its own numbers fall from 1 to 0.5, and the curve has its minimum at 0.5629.",
    source: "Temperature guide, second table; claims QT-3, QT-5",
  },
  dead: {
    ...defaults,
    title: "Dead gradient",
    points: [...pair(0, 80, 100), ...pair(1, 150, 165), ...pair(2, 215, 235)],
    temperature: 0.01,
    about: ["temperature"],
    look: "The pairs crowd one half of the circle and nothing moves: at τ = 0.01 every partner has won by far. Raise τ to 0.3, and the arrows come back.",
    source: "Claims WL-13, WL-15",
  },
  quadrants: {
    ...defaults,
    title: "Four quadrants",
    loss: "supcon_out",
    points: features("untrained"),
    temperature: 0.05,
    rate: 1,
    look: "Directions of 100 samples, before and after the published training. In its picture τ = 0.05 spreads them best; on the circle, which is all that the loss sees, 0.99 is as even.",
    source: "Temperature guide, sections 2 and 3, replayed (nceref quadrants); claims QT-9, QT-12",
    replayed: quadrants,
    variants: {
      untrained: { title: "untrained", points: features("untrained"), temperature: 0.05 },
      0.99: trained("0.99", 0.99),
      0.05: trained("0.05", 0.05),
      0.01: trained("0.01", 0.01),
    },
  },
  paco: {
    ...defaults,
    title: "PaCo’s 0.71",
    loss: "paco",
    points: [
      ...samples(0, 52, 66, 78, 87, 96, 103, 115, 126, 140),
      ...samples(1, 232, 244, 257, 263, 272, 281, 293, 304, 318),
      one("c", 0, 65),
      one("c", 1, 292),
    ],
    rate: 0.5,
    about: ["alpha"],
    look: "Press Play: with K = 8 positives and α = 0.05, the centers end with 1/(1 + αK) = 0.71 of the probability. Another α, or another K, has another optimum.",
    source: "PaCo note, which has K = 8.192; claims PC-5, PC-9, PC-10, PC-11",
    optimum: true,
  },
  margin: {
    ...defaults,
    title: "A margin",
    loss: "arcface",
    points: [
      ...samples(0, 70, 95, 130),
      ...samples(1, 170, 205, 250),
      ...samples(2, 290, 330, 20),
      one("c", 0, 90),
      one("c", 1, 210),
      one("c", 2, 330),
    ],
    temperature: 0.1,
    rate: 0.02,
    look: "All points are nearest to the weight of their class. Set m to 0, and those that are far from a border feel next to nothing; with a margin they are drawn on.",
    source: "nceref losses arcface",
  },
};

/** What other losses start with, where the points of the preset do not suit them. */
export const ownPreset = { q: "start", s: "margin" };
