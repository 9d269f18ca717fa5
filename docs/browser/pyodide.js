// Where Python comes from: the folder of a release of Pyodide that has NumPy 2.1 or later.
export const PYODIDE = "https://cdn.jsdelivr.net/pyodide/v0.28.3/full/";
