// The page: what is pasted goes to a worker on this machine, and the report comes back.

import { PYODIDE } from "./pyodide.js";

// On the front page it is a box: a loss, Run, and the verdict.
document.documentElement.classList.toggle("box", location.search === "?box");

const HERE = new URL(".", location.href).href;
const RELEASE = new URL(PYODIDE, HERE).href;
const get = (id) => document.getElementById(id);
let worker, timer, contents;

// The worker inherits it: only this site and the release of Pyodide can be reached.
const policy = document.createElement("meta");
policy.httpEquiv = "Content-Security-Policy";
policy.content =
  `default-src 'none'; connect-src 'self' ${new URL(RELEASE).origin}; worker-src blob:; img-src data:; ` +
  `script-src 'self' blob: ${new URL(RELEASE).origin} 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; frame-src blob:`;
document.head.append(policy);

async function started() {
  const source = await (await fetch(`${HERE}worker.js`)).text();
  const made = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  made.postMessage({ kind: "start", pyodide: RELEASE, site: HERE, wheels: contents.wheels });
  return made;
}

function end(why) {
  worker?.terminate();
  worker = undefined;
  finish();
  if (why) show({ verdict: "Stopped", reason: why, bad: true });
}

function finish() {
  clearTimeout(timer);
  get("run").disabled = false;
  get("stop").disabled = true;
  get("status").textContent = "";
}

function show({ verdict, reason, bad, explanations = [], printed = "", html = "", json = "" }) {
  const result = get("result");
  result.hidden = false;
  result.className = bad ? "bad" : "";
  get("verdict").textContent = verdict;
  get("sentence").textContent = reason;
  get("explanations").replaceChildren(...explanations.flatMap(explained));
  get("printed").hidden = !printed;
  get("printed").querySelector("pre").textContent = printed;
  get("save").hidden = get("report").hidden = !html;
  if (html) {
    offer("page", html, "text/html");
    offer("data", json, "application/json");
    get("report").src = get("whole").href = get("page").href;
  }
  get("verdict").focus();
}

function explained({ id, lead, fix }) {
  const lines = [[id, lead], ...(fix ? [["Fix", fix]] : [])];
  return lines.map(([name, text]) => {
    const [line, start] = ["p", "strong"].map((tag) => document.createElement(tag));
    start.textContent = name;
    line.append(start, ` ${text}`);
    return line;
  });
}

// As high as the report, which has parts that open; its links to other sites open beside this page.
function fit() {
  const frame = get("report");
  const body = frame.contentDocument.body;
  for (const link of body.querySelectorAll("a[href^=http]")) Object.assign(link, { target: "_blank", rel: "noopener" });
  new ResizeObserver(() => { frame.style.height = `${Math.ceil(body.getBoundingClientRect().height) + 4}px`; }).observe(body);
}

function offer(id, text, type) {
  URL.revokeObjectURL(get(id).href);
  get(id).href = URL.createObjectURL(new Blob([text], { type }));
}

function answered({ error, line, verdict, reason, ...rest }) {
  if (error) {
    show({ verdict: "Not checked", reason: error, bad: true, ...rest });
    if (line) mark(line);
  } else {
    show({ verdict: verdict.toUpperCase(), reason, bad: verdict === "differs" || verdict === "error", ...rest });
  }
}

function mark(line) {
  const area = get("source");
  const lines = area.value.split("\n");
  const begin = lines.slice(0, line - 1).join("\n").length + (line > 1);
  area.setAttribute("aria-invalid", "true");
  area.setSelectionRange(begin, begin + (lines[line - 1] ?? "").length);
}

function heard({ data }) {
  if (data.kind === "status") get("status").textContent = data.text;
  else if (data.kind === "ready") judge();
  else if (data.kind === "answer") { finish(); answered(data.answer); }
  else if (data.kind === "unloaded") unloaded();
  else end(`Python could not go on: ${data.text}`);
}

// What a browser says of a script that it cannot load helps nobody.
function unloaded() {
  end(`Python could not be loaded from ${new URL(RELEASE).host}. Check the network, or check the loss in a terminal: ` +
    `nceref verify FILE:FUNCTION --loss ${get("loss").value}`);
  get("verdict").textContent = "Not checked";
}

function judge() {
  const seconds = Number(get("limit").value);
  get("status").textContent = "Checking …";
  timer = setTimeout(() => end(`The loss did not return within ${seconds} s and was stopped. Is there an endless loop?`), 1000 * seconds);
  worker.postMessage({
    kind: "judge", source: get("source").value, name: get("name").value.trim(), loss: get("loss").value, suite: get("suite").value,
  });
}

async function run(event) {
  event.preventDefault();
  get("result").hidden = true;
  get("source").removeAttribute("aria-invalid");
  get("run").disabled = true;
  get("stop").disabled = false;
  if (worker) return judge();
  try {
    worker = await started();
    worker.onmessage = heard;
    worker.onerror = (error) => end(`Python could not go on: ${error.message}`);
  } catch {
    unloaded();
  }
}

function choose() {
  const { loss, source } = contents.examples[get("example").value];
  get("source").value = source;
  get("loss").value = loss;
  get("name").value = "";
  get("result").hidden = true;
  describe();
}

function describe() {
  const { inputs, summary } = contents.losses[get("loss").value];
  get("about-loss").textContent = `${summary} Inputs: ${inputs.join(", ")}.`;
}

contents = await (await fetch(`${HERE}contents.json`)).json();
get("loss").append(...Object.keys(contents.losses).map((name) => new Option(name, name, name === "nt_xent", name === "nt_xent")));
get("example").append(...contents.examples.map(({ title }, at) => new Option(title, at)));
choose();
get("example").addEventListener("change", choose);
get("loss").addEventListener("change", describe);
get("form").addEventListener("submit", run);
get("report").addEventListener("load", fit);
get("stop").addEventListener("click", () => end("You have stopped it."));
