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

// A part of another page is as high as what it shows, and has the theme that was chosen here.
for (const frame of document.querySelectorAll("iframe.part")) {
  const fit = () => {
    const {documentElement, body} = frame.contentDocument
    const dress = () => { documentElement.style.colorScheme = getComputedStyle(document.documentElement).colorScheme }
    new ResizeObserver(() => { frame.style.height = `${Math.ceil(body.getBoundingClientRect().height) + 2}px` }).observe(body)
    new MutationObserver(dress).observe(document.documentElement, {attributeFilter: ["data-theme"]})
    dress()
  }
  frame.addEventListener("load", fit)
  if (frame.contentDocument?.readyState === "complete" && frame.contentDocument.URL !== "about:blank") fit()
}

// The same program in several frameworks: a list whose entries begin with a name becomes tabs. What is chosen is chosen
// on every page.
const CHOSEN = "nceref-framework"
const lists = [...document.querySelectorAll("ul.tabs")].map((list, number) => {
  const bar = document.createElement("div")
  bar.className = "tabs"
  bar.setAttribute("role", "tablist")
  list.setAttribute("role", "presentation")
  const tabs = [...list.children].map((panel, place) => {
    const name = panel.firstElementChild.textContent.trim()
    panel.firstElementChild.remove()
    const tab = Object.assign(document.createElement("button"), {type: "button", textContent: name, id: `tab-${number}-${place}`})
    tab.setAttribute("role", "tab")
    panel.id = `panel-${number}-${place}`
    panel.setAttribute("role", "tabpanel")
    panel.setAttribute("aria-labelledby", tab.id)
    tab.setAttribute("aria-controls", panel.id)
    tab.addEventListener("click", () => choose(name))
    return {name, tab, panel}
  })
  bar.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key]
    if (!step) return
    const next = tabs.at((tabs.findIndex(({tab}) => tab === document.activeElement) + step) % tabs.length)
    choose(next.name)
    next.tab.focus()
  })
  bar.append(...tabs.map(({tab}) => tab))
  list.before(bar)
  return tabs
})

function choose(name) {
  localStorage.setItem(CHOSEN, name)
  for (const tabs of lists) {
    const shown = tabs.find(tab => tab.name === name) ?? tabs[0]
    for (const one of tabs) {
      one.panel.hidden = one !== shown
      one.tab.setAttribute("aria-selected", String(one === shown))
      one.tab.tabIndex = one === shown ? 0 : -1
    }
  }
}
if (lists.length) choose(localStorage.getItem(CHOSEN) ?? lists[0][0].name)
