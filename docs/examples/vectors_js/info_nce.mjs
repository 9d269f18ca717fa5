// InfoNCE with its gradient in JavaScript, on the vectors of `nceref vectors export --loss info_nce`, or as a server.
//
//     node info_nce.mjs vectors > outputs.jsonl && nceref vectors compare vectors outputs.jsonl
//     nceref verify cmd:"node info_nce.mjs --serve" --loss info_nce
//
// With --wrong, the gradient by the rows lacks the division by the temperature, and the value is right.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const wrong = process.argv.includes("--wrong");
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

// Rows as they are compared, their lengths, and what turns a gradient by these rows into one by those that were given.
function prepared(rows, normalize) {
  const lengths = rows.map((row) => (normalize ? Math.sqrt(dot(row, row)) : 1));
  if (lengths.includes(0)) throw new Error("a row of zeros has no direction");
  const units = rows.map((row, i) => row.map((x) => x / lengths[i]));
  const back = (grads) =>
    grads.map((g, i) => {
      const along = normalize ? dot(g, units[i]) : 0;
      return g.map((x, c) => (x - along * units[i][c]) / lengths[i]);
    });
  return { units, back };
}

// Rows of queries and keys, pair by pair; each query is compared with all keys.
function infoNce(queries, keys, temperature, normalize) {
  const [q, k] = [prepared(queries, normalize), prepared(keys, normalize)];
  const count = queries.length;
  const scale = wrong ? 1 : temperature;
  let [value, byTemperature] = [0, 0];
  const byUnits = [q, k].map(({ units }) => units.map((row) => row.map(() => 0)));
  for (let i = 0; i < count; i++) {
    const logits = k.units.map((key) => dot(q.units[i], key) / temperature);
    const top = Math.max(...logits);
    const masses = logits.map((s) => Math.exp(s - top));
    const sum = masses.reduce((a, b) => a + b);
    value += (Math.log(sum) + top - logits[i]) / count;
    for (let j = 0; j < count; j++) {
      const slope = (masses[j] / sum - (i === j)) / count;
      byTemperature -= (slope * logits[j]) / temperature;
      for (let c = 0; c < q.units[i].length; c++) {
        byUnits[0][i][c] += (slope * k.units[j][c]) / scale;
        byUnits[1][j][c] += (slope * q.units[i][c]) / scale;
      }
    }
  }
  return { value, grad: { queries: q.back(byUnits[0]), keys: k.back(byUnits[1]), temperature: byTemperature } };
}

// 16 hexadecimal digits are the bits of a float64; an array is a flat list, row by row.
function numbers({ shape, hex }) {
  const view = new DataView(new ArrayBuffer(8));
  const flat = hex.map((digits) => {
    view.setBigUint64(0, BigInt(`0x${digits}`));
    return view.getFloat64(0);
  });
  if (shape.length === 0) return flat[0];
  return Array.from({ length: shape[0] }, (_, i) => flat.slice(i * shape[1], (i + 1) * shape[1]));
}

// JSON has no NaN and no infinity: these are words.
const written = (x) => (Number.isFinite(x) ? x : String(x));

// A case of the vectors, or a call of the protocol: both have `settings` and `inputs`.
function answer({ settings, inputs }) {
  const { queries, keys, temperature, ...others } = inputs;
  const { normalize, reduction = "mean" } = settings;
  const more = Object.keys(others).concat(reduction === "mean" ? [] : `reduction ${reduction}`);
  if (more.length) return { unsupported: more.join(", ") };
  try {
    const { value, grad } = infoNce(numbers(queries), numbers(keys), numbers(temperature), normalize === "l2");
    const flat = Object.entries(grad).map(([name, g]) => [name, [g].flat(2).map(written)]);
    return { value: written(value), grad: Object.fromEntries(flat) };
  } catch (error) {
    return { error: error.message };
  }
}

function fromFiles(folder) {
  const [manifest, cases] = ["MANIFEST.json", "info_nce.json"].map((name) => readFileSync(join(folder, name)));
  const sha256 = (content) => createHash("sha256").update(content).digest("hex");
  if (JSON.parse(manifest).files["info_nce.json"] !== sha256(cases)) throw new Error("info_nce.json was changed");
  console.log(JSON.stringify({ manifest: sha256(manifest), implementation: "info_nce.mjs" }));
  for (const one of JSON.parse(cases).cases) console.log(JSON.stringify({ id: one.id, ...answer(one) }));
}

// One line for one line: standard output has nothing else.
function serve() {
  const hello = { implementation: "info_nce.mjs", losses: ["info_nce"], dtypes: ["float64"] };
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    const message = JSON.parse(line);
    if (message.hello) console.log(JSON.stringify({ hello }));
    if (message.bye) lines.close();
    if (!message.run) return;
    const { id } = message.run;
    const { error, unsupported, ...result } = answer(message.run);
    if (error) console.log(JSON.stringify({ error: { id, message: error } }));
    else if (unsupported) console.log(JSON.stringify({ unsupported: { id, reason: unsupported } }));
    else console.log(JSON.stringify({ result: { id, ...result } }));
  });
}

if (process.argv.includes("--serve")) serve();
else fromFiles(process.argv[2]);
