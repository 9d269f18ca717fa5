// Runs Python with nceref, away from the page: the page ends it when it takes too long.

const send = (kind, data) => postMessage({ kind, ...data });
let judge;
let loaded = false;

async function start({ pyodide, site, wheels }) {
  send("status", { text: "Python is loading …" });
  importScripts(`${pyodide}pyodide.js`);
  const python = await loadPyodide({ indexURL: pyodide, stdout: () => {}, stderr: () => {} });
  await python.loadPackage("numpy", { messageCallback: () => {} });
  loaded = true;
  for (const name of wheels) {
    python.unpackArchive(await (await fetch(`${site}wheels/${name}`)).arrayBuffer(), "wheel");
  }
  const program = await (await fetch(`${site}judge.py`)).text();
  // From here on nothing is loaded, and nothing that is pasted can be sent anywhere.
  for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "WebTransport", "importScripts", "Worker"]) {
    self[name] = undefined;
  }
  python.runPython(program);
  judge = python.globals.get("judge");
}

onmessage = async ({ data }) => {
  try {
    if (data.kind === "start") {
      await start(data);
      send("ready");
    } else {
      const answer = judge(data.source, data.name, data.loss, data.suite, (text) => send("status", { text }));
      send("answer", { answer: JSON.parse(answer) });
    }
  } catch (error) {
    // Of a traceback, what was raised.
    send(loaded ? "failed" : "unloaded", { text: String(error.message ?? error).trim().split("\n").at(-1) });
  }
};
