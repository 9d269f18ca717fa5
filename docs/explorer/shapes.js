// Marks of the labels: every color has a shape of its own, so that neither is needed to tell them apart.

const NAMES = ["circle", "square", "triangle", "diamond", "hexagon", "star"];
export const COLORS = ["blue", "orange", "green", "purple", "gold", "gray"];

const regular = (corners, turn, stretch = 1) =>
  Array.from({ length: corners }, (_, i) => {
    const angle = turn + (2 * Math.PI * i) / corners;
    return [stretch * Math.cos(angle), stretch * Math.sin(angle)];
  });

const star = Array.from({ length: 10 }, (_, i) => {
  const [radius, angle] = [i % 2 ? 0.58 : 1.35, -Math.PI / 2 + (Math.PI * i) / 5];
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
});

const CORNERS = [
  null,
  regular(4, Math.PI / 4, 1.25),
  regular(3, -Math.PI / 2, 1.42),
  regular(4, 0, 1.32),
  regular(6, 0, 1.1),
  star,
];

/** Path of the mark of a label, of about the same area for all, around the origin. */
export function mark(label, radius) {
  const corners = CORNERS[label];
  if (!corners)
    return `M${-radius},0a${radius},${radius} 0 1 0 ${2 * radius},0a${radius},${radius} 0 1 0 ${-2 * radius},0z`;
  return `M${corners.map(([x, y]) => `${(x * radius).toFixed(2)},${(y * radius).toFixed(2)}`).join("L")}z`;
}

const ROLES = { q: "", k: "partner ", n: "negative ", s: "", c: "center " };

/** A name that a screen reader can say: "blue circle", "partner orange square". */
export const named = ({ role, label }) => `${ROLES[role]}${COLORS[label]} ${NAMES[label]}`;

/** A text with links from the ids of claims to what they say, on the site that the explorer is part of. */
export const linked = (text) =>
  text.split(/\b([A-Z]{2,4}-\d+)\b/).map((part, i) =>
    i % 2 ? html("a", { href: `../generated/claims/index.html#${part.toLowerCase()}` }, part) : part,
  );

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes and children. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** An HTML element with attributes and children. */
export function html(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** The mark of a point as a small picture within text. */
export function icon(point) {
  const picture = svg("svg", {
    viewBox: "-11 -11 22 22",
    class: `icon label-${point.label} role-${point.role}`,
    "aria-hidden": "true",
  });
  picture.append(...glyph(point, point.role === "q" ? 9 : 6.5));
  return picture;
}

/** What is drawn for a point: samples are filled, partners outlined, centers outlined with a dot. */
export function glyph({ role, label }, size) {
  const outlined = role === "k" || role === "c";
  const shape = svg("path", {
    d: mark(label, outlined ? size * 1.1 : role === "q" ? size * 0.72 : size),
    class: outlined ? "outline" : "solid",
  });
  return role === "c" ? [shape, svg("circle", { r: size * 0.28, class: "solid" })] : [shape];
}
