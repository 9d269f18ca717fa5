// How the search ranks pages: those that explain before those that list. Sphinx puts this into its own script.
const FIRST = [/^tutorials\//, /^generated\/(losses|start)/, /^[a-z-]+$/, /^generated\/(claims|derivations)\//]
const LAST = /^generated\/(api|changelog|contributing)|^(performance|audit|genindex)/
const wanted = () => splitQuery((new URLSearchParams(location.search).get("q") || "").toLowerCase())
const plain = text => text.toLowerCase().replace(/[-_]/g, "")

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  // A word in the title of the page says more than one in the title of a section; the kind of page settles the rest.
  score: ([docname, title, , , score]) => {
    const named = wanted().filter(word => plain(title).includes(plain(word))).length
    const place = FIRST.findIndex(pattern => pattern.test(docname))
    return score + 6 * named + (LAST.test(docname) ? -4 : place < 0 ? 0 : 4 - place)
  },
}
