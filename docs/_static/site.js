// The table of all claims gets a filter; without this script all of them are shown.
const place = document.getElementById("claims")
const table = place && document.querySelector("#claims ~ * table, #claims ~ table")
if (table) {
  const rows = [...table.tBodies[0].rows]
  const text = (row, column) => row.cells[column].textContent.trim()
  // NT-Xent, nt_xent and "ntxent" are one word.
  const plain = words => words.toLowerCase().replace(/[-_]/g, "")
  const form = document.createElement("form")
  const counts = new Map()
  const [VERDICT, SOURCE] = [3, 4]
  for (const row of rows) counts.set(text(row, VERDICT), (counts.get(text(row, VERDICT)) || 0) + 1)

  // The explorer knows ids of claims, and not the pages that have them.
  const asked = rows.find(row => `#${text(row, 0)}`.toLowerCase() === location.hash.toLowerCase())
  if (asked) location.replace(asked.querySelector("a").href)

  const field = (name, control) => {
    const label = document.createElement("label")
    label.append(name + " ", control)
    form.append(label)
    control.addEventListener("input", filter)
    return control
  }
  const select = (options) => {
    const control = document.createElement("select")
    for (const [value, name] of options) control.add(new Option(name, value))
    return control
  }
  const sources = [...new Set(rows.flatMap(row => text(row, SOURCE).split("; ")))].sort()
  const verdict = field("Verdict", select([["", "all"], ...[...counts].map(([name, n]) => [name, `${name} (${n})`])]))
  const source = field("Source", select([["", "all"], ...sources.map(name => [name, name])]))
  const words = field("Words", Object.assign(document.createElement("input"), {type: "search", placeholder: "in any order"}))
  const shown = document.createElement("output")
  form.append(shown)
  form.addEventListener("submit", event => event.preventDefault())
  place.append(form)

  // The address keeps what was chosen, so that it can be shared.
  const fields = {verdict, source, words}
  const given = new URLSearchParams(location.search)
  for (const [name, control] of Object.entries(fields)) control.value = given.get(name) || ""
  filter()

  function filter(event) {
    const wanted = words.value.split(/\s+/).map(plain)
    for (const row of rows) {
      row.hidden = !(
        (!verdict.value || text(row, VERDICT) === verdict.value) &&
        (!source.value || text(row, SOURCE).split("; ").includes(source.value)) &&
        wanted.every(word => plain(row.textContent).includes(word)))
    }
    shown.value = `${rows.filter(row => !row.hidden).length} of ${rows.length} claims`
    if (!event) return
    const chosen = new URLSearchParams(Object.entries(fields).map(([k, c]) => [k, c.value]).filter(([, v]) => v))
    history.replaceState(null, "", `${location.pathname}${chosen.size ? "?" + chosen : ""}`)
  }
}

// A formula, a table or a block that is wider than the page can be scrolled with the keyboard.
const reach = () => {
  for (const wide of document.querySelectorAll("div.math, .pst-scrollable-table-container, article pre")) {
    wide.toggleAttribute("tabindex", false)
    if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0
  }
}
addEventListener("load", reach)
addEventListener("resize", reach)

// The theme leaves what opens a part of its table of contents without a name, and names a button by other words than it shows.
for (const toggle of document.querySelectorAll("nav summary")) {
  toggle.ariaLabel = toggle.closest("li").querySelector("a").textContent.trim()
}
for (const button of document.querySelectorAll(".search-button-field")) {
  button.ariaLabel = button.textContent.trim().replace(/\s+/g, " ")
}
