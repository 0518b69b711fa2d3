// The table of "See it": README's picture, drawn again whenever a control changes.
import { Shuffle } from "./shuffle_v1.mjs"
import { cursorAfter, holding, placesOf, shareOf, stepAt, stepsOf, unitAt } from "./partition_v1.mjs"

const SHOWN = 48 // columns of an epoch at most; of a larger one, those from a position on
const MOST = 64 // ranks, and the batch size of one
// Of one sample, a step under "carry" reads an epoch a place: the last one then is 2**32 - 1
const LAST_EPOCH = 2 ** 32 - MOST * MOST
const CONTROLS = [
  // name, what it says, least, most by the slider, most at all, at first
  ["n", "samples", 1, SHOWN, 9e15, 13],
  ["ranks", "ranks", 1, 8, MOST, 2],
  ["batch", "batch size of a rank", 1, 8, MOST, 2],
  ["subEpochs", "sub-epochs", 1, 6, 12, 1],
  ["epoch", "epoch", 0, 9, LAST_EPOCH, 0],
  ["seed", "seed", 0, 9, 2 ** 53 - 1, 1],
  ["stop", "stopped after steps", 0, 4, 9e15, 2],
  ["then", "then ranks", 1, 8, MOST, 3],
  ["from", "first position shown", 0, 0, 9e15, 0],
]
const REMAINDERS = ["spread", "drop", "pad", "carry"]

const made = (tag, attributes = {}, ...inside) => {
  const element = document.createElement(tag)
  Object.assign(element, attributes)
  element.append(...inside)
  return element
}

// One number, by a slider and as digits
class Control {
  constructor([name, says, least, shown, most, value], changed) {
    Object.assign(this, { name, least, most, value })
    const heard = event => {
      const text = event.target.value.trim()
      if (/^\d{1,16}$/.test(text)) this.value = Math.min(Math.max(Number(text), least), this.most)
      changed(event.target)
    }
    this.range = made("input", { type: "range", min: least, max: shown, step: 1, oninput: heard })
    this.range.setAttribute("aria-label", says)
    this.digits = made("input", { type: "text", inputMode: "numeric", onchange: heard })
    this.digits.name = name
    this.line = made("label", { className: "seen-control" }, made("span", {}, says), this.digits)
    this.all = made("div", {}, this.line, this.range)
    this.all.dataset.control = name
  }

  // Says its number, and how far it may be moved
  limit(shown, most) {
    this.most = most
    this.value = Math.min(this.value, most)
    this.range.max = Math.min(shown, most)
    this.range.value = this.value
    this.digits.value = this.value
  }
}

// Which steps of a sub-epoch the runs read: all of the first, or what is left for the resumed one
const readsIn = (run, part) => run.resume === null || part >= run.resume.subEpoch

// The place at which the last step of a sub-epoch ends; 0 if it has none
const endOf = steps =>
  steps.numSteps > steps.firstStep ? placesOf(steps, steps.numSteps - 1)[1] : 0

// The columns that are drawn: places of each sub-epoch, those past its end included
function columnsOf(runs, epoch, from) {
  const { n, subEpochs, remainder } = runs[0]
  const ends = part => runs.filter(run => readsIn(run, part)).map(run => endOf(stepsOf(run, epoch, part)))
  const columns = []
  let left = SHOWN // positions; as many past an end come with them
  for (let part = holding(runs[0], from); part < subEpochs && left > 0; part++) {
    const steps = stepsOf(runs[0], epoch, part)
    const low = Math.max(steps.first, from)
    let high = Math.min(steps.stop, low + left)
    left -= high - low
    if (high === steps.stop && remainder === "pad") high = Math.max(high, ...ends(part))
    if (high === n && part === subEpochs - 1 && remainder === "carry")
      for (let other = 0; other < subEpochs; other++) high = Math.max(high, ...ends(other))
    high = Math.min(high, steps.stop + SHOWN) // and a cell has at most 1000 columns
    for (let place = low; place < high; place++)
      columns.push({ part, place, ...unitAt(steps, place) })
    if (high < steps.stop) break
  }
  return columns
}

// The steps that touch the columns; a resumed run goes on where the first one stops
function stepsIn(columns, epoch, first, resumed) {
  const found = []
  for (let part = 0; part <= columns.at(-1).part; part++) {
    // a step that begins in a sub-epoch before those drawn reads from these, too, under "carry"
    const held = first.remainder === "carry" ? columns : columns.filter(each => each.part === part)
    if (held.length === 0) continue
    const places = held.map(column => column.place)
    const runs = []
    if (!resumed || part < resumed.resume.subEpoch) runs.push([first, Infinity])
    else if (part === resumed.resume.subEpoch) runs.push([first, resumed.resume.step])
    if (resumed && readsIn(resumed, part)) runs.push([resumed, Infinity])
    for (const [run, until] of runs) {
      const steps = stepsOf(run, epoch, part)
      const stop = Math.min(until, steps.numSteps)
      for (let step = stepAt(steps, places[0]); step < stop; step++) {
        if (placesOf(steps, step)[0] > places.at(-1)) break
        found.push({ part, step, steps })
      }
    }
  }
  return found
}

const row = (name, cells) => {
  const head = made("th", { scope: "row" }, name)
  return made("tr", {}, head, ...cells)
}

// Cells over intervals of columns, and empty ones between: [low, high, text, class]
function cells(columns, intervals) {
  const found = []
  let at = 0
  const empty = to => {
    while (at < to) {
      found.push(made("td", { className: "seen-none", title: "nobody reads it in these steps" }))
      at++
    }
  }
  for (const [low, high, text, className] of intervals) {
    empty(low)
    found.push(made("td", { colSpan: high - low, className }, text))
    at = high
  }
  empty(columns.length)
  return found
}

// The columns [low, high) of the places [start, stop), as far as they are drawn. Under "pad" places
// past the end of a sub-epoch are its own columns; else a step runs on into the next one's
function within(columns, { run, subEpoch }, [start, stop]) {
  const held = each =>
    each.place >= start && each.place < stop &&
    (run.remainder !== "pad" || each.part === subEpoch)
  const low = columns.findIndex(held)
  return low < 0 ? null : [low, low + columns.filter(held).length]
}

function rowsOf(name, columns, found) {
  const steps = [], ranks = []
  for (const { step, steps: of } of found) {
    const drawn = within(columns, of, placesOf(of, step))
    if (!drawn) continue
    const text = drawn[1] - drawn[0] > 1 ? `step ${step}` : `s${step}`
    steps.push([...drawn, text, step % 2 ? "seen-step" : "seen-step seen-even"])
    for (let rank = 0; rank < of.run.ranks; rank++) {
      const share = within(columns, of, shareOf(of, step, rank))
      if (!share) continue
      const who = share[1] - share[0] > 1 ? `rank ${rank}` : `r${rank}`
      ranks.push([...share, who, `seen-rank seen-rank-${rank % 8}`])
    }
  }
  return [row("step", cells(columns, steps)), row(name, cells(columns, ranks))]
}

const several = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`

function draw(controls, table, said) {
  const value = Object.fromEntries(controls.map(each => [each.name, each.value]))
  const { n, epoch, subEpochs, batch } = value
  const remainder = document.querySelector("#seen select").value
  const first = { n, ranks: value.ranks, batch, subEpochs, remainder, resume: null }
  const parts = Array.from({ length: subEpochs }, (_, part) => stepsOf(first, epoch, part))
  const total = parts.reduce((sum, each) => sum + each.numSteps, 0)
  const by = Object.fromEntries(controls.map(each => [each.name, each]))
  by.stop.limit(total, total)
  by.from.limit(n - 1, Math.max(0, n - SHOWN))
  by.from.all.hidden = n <= SHOWN
  const from = n <= SHOWN ? 0 : by.from.value

  const stop = by.stop.value
  let left = stop, at = null
  for (const each of parts) {
    if (left <= each.numSteps) {
      at = cursorAfter(each, left)
      break
    }
    left -= each.numSteps
  }
  const resumed = stop < total ? { ...first, ranks: value.then, resume: at } : null
  const columns = columnsOf(resumed ? [first, resumed] : [first], epoch, from)
  const orders = new Map()
  const sample = ({ epoch: of, position }) => {
    if (!orders.has(of)) orders.set(of, new Shuffle(n, value.seed, of))
    return orders.get(of).index(position)
  }
  const mark = each => (each.padded ? "seen-padded" : each.epoch > epoch ? "seen-next" : "")
  const numbers = of => columns.map(each => made("td", { className: mark(each) }, `${of(each)}`))
  const body = [row("position", numbers(each => each.position)), row("sample", numbers(sample))]
  if (subEpochs > 1) {
    const intervals = []
    columns.forEach((each, i) => {
      const last = intervals.at(-1)
      if (last && last[2] === each.part) last[1] = i + 1
      else intervals.push([i, i + 1, each.part, ""])
    })
    for (const each of intervals) each[2] = each[1] - each[0] > 1 ? `sub-epoch ${each[2]}` : `${each[2]}`
    body.push(row("sub-epoch", cells(columns, intervals)))
  }
  body.push(...rowsOf(several(first.ranks, "rank"), columns, stepsIn(columns, epoch, first, null)))
  if (resumed) {
    const name = `${first.ranks}, and then ${resumed.ranks}`
    body.push(...rowsOf(name, columns, stepsIn(columns, epoch, first, resumed)))
  }
  table.replaceChildren(made("tbody", {}, ...body))
  const size = first.ranks * batch
  const goes = resumed ? `; resumed after ${several(stop, "step")} on ${several(value.then, "rank")}` : ""
  said.textContent =
    `Epoch ${epoch}: ${several(total, "step")} of ${remainder === "spread" ? "at most " : ""}` +
    `${several(size, "sample")} on ${several(first.ranks, "rank")}${goes}.`
}

const place = document.getElementById("seen")
const table = made("table", { className: "seen" })
const said = made("p", {})
said.setAttribute("aria-live", "polite")
const select = made("select", { className: "remainder" }, ...REMAINDERS.map(name => made("option", { value: name }, name)))
const changed = () => {
  for (const each of controls) each.limit(Number(each.range.max), each.most)
  draw(controls, table, said)
}
const controls = CONTROLS.map(each => new Control(each, changed))
select.onchange = changed
const remainder = made("label", { className: "seen-control" }, made("span", {}, "remainder"), select)
const panel = made("div", { className: "seen-controls" })
panel.append(...controls.slice(0, 4).map(each => each.all), remainder, ...controls.slice(4).map(each => each.all))
place.replaceChildren(panel, said, made("div", { className: "seen-scroll", tabIndex: 0 }, table))
changed()
