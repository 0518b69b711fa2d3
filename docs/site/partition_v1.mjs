// partition-v1 for one batch size: which places each rank reads, by specification.md.
//
// A run is { n, ranks, batch, subEpochs, remainder, resume }, with resume null or a cursor
// { epoch, subEpoch, step, position }. Places count from the start of an epoch. Only places of the
// whole run, under "carry", may be past 2**53, and these are BigInts.

// All numbers up to n and a step together have to be below 2**53.

// x / y rounded down, and up; exact below 2**53
const down = (x, y) => (x - (x % y)) / y
const up = (x, y) => down(x, y) + (x % y > 0)

export const split = (total, parts, part) =>
  part * down(total, parts) + Math.min(part, total % parts)

// How many places before x are less than rank modulo ranks
const below = (x, rank, ranks) => down(x, ranks) * rank + Math.min(x % ranks, rank)

// The least place from `least` on that is a multiple of size away from begin; all BigInts
function aligned(begin, least, size) {
  return least <= begin ? begin : begin + ((least - begin + size - 1n) / size) * size
}

const runPlace = (run, epoch, position) => BigInt(epoch) * BigInt(run.n) + BigInt(position)

// The steps of a sub-epoch that are left: [firstStep, numSteps), of `length` places from `begin`
export function stepsOf(run, epoch, subEpoch) {
  const { n, subEpochs, remainder, resume } = run
  const size = run.ranks * run.batch
  const first = split(n, subEpochs, subEpoch)
  const stop = split(n, subEpochs, subEpoch + 1)
  const here = resume !== null && resume.epoch === epoch && resume.subEpoch === subEpoch
  const start = here ? resume.position : first
  const firstStep = here ? resume.step : 0
  let begin = start
  let count, length
  if (remainder === "carry") {
    const from = resume === null ? 0n : runPlace(run, resume.epoch, resume.position)
    const origin = runPlace(run, epoch, 0)
    const place = aligned(from, origin + BigInt(start), BigInt(size)) - origin
    count = place < BigInt(stop) ? up(stop - Number(place), size) : 0
    begin = count ? Number(place) : start
    length = count * size
  } else {
    const left = stop - start
    count = remainder === "drop" ? down(left, size) : up(left, size)
    length = remainder === "spread" ? left : count * size
  }
  // what is added to places to deal them to ranks, modulo their number
  const shift =
    remainder === "carry" ? Number(runPlace(run, epoch, 0) % BigInt(run.ranks)) : 0
  const numSteps = firstStep + count
  return { run, epoch, subEpoch, first, start, stop, firstStep, numSteps, begin, length, shift }
}

// The places [start, stop) of a step
export function placesOf(steps, step) {
  const count = steps.numSteps - steps.firstStep
  const at = number => steps.begin + split(steps.length, count, number - steps.firstStep)
  return [at(step), at(step + 1)]
}

// The places [start, stop) of a step that a rank reads
export function shareOf(steps, step, rank) {
  const { ranks } = steps.run
  const [start, stop] = placesOf(steps, step)
  const from = ((start % ranks) + steps.shift) % ranks
  const before = r => start + below(from + stop - start, r, ranks) - below(from, r, ranks)
  return [before(rank), before(rank + 1)]
}

// The step that reads a place, or the first one after it
export function stepAt(steps, place) {
  let low = steps.firstStep
  let high = steps.numSteps
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2)
    if (placesOf(steps, middle)[1] <= place) low = middle + 1
    else high = middle
  }
  return low
}

// What a place is: the epoch and the position that is read there, and whether it is padding
export function unitAt(steps, place) {
  const { n, remainder } = steps.run
  const { first, stop, epoch } = steps
  if (remainder === "pad" && place >= stop)
    return { epoch, position: first + ((place - first) % (stop - first)), padded: true }
  return { epoch: epoch + down(place, n), position: place % n, padded: false }
}

// Where a run stands when the steps before `step` of a sub-epoch are finished
export function cursorAfter(steps, step) {
  const { run, epoch, subEpoch } = steps
  if (step < steps.numSteps) return { epoch, subEpoch, step, position: placesOf(steps, step)[0] }
  if (run.remainder === "carry") {
    const { resume } = run
    const from = resume === null ? 0n : runPlace(run, resume.epoch, resume.position)
    const size = BigInt(run.ranks * run.batch)
    const place = aligned(from, runPlace(run, epoch, steps.stop), size)
    const position = Number(place % BigInt(run.n))
    return { epoch: Number(place / BigInt(run.n)), subEpoch: holding(run, position), step: 0, position }
  }
  if (steps.numSteps === steps.firstStep) return { epoch, subEpoch, step, position: steps.start }
  if (subEpoch + 1 === run.subEpochs) return { epoch: epoch + 1, subEpoch: 0, step: 0, position: 0 }
  return { epoch, subEpoch: subEpoch + 1, step: 0, position: steps.stop }
}

// The sub-epoch that holds a position
export function holding(run, position) {
  let part = 0
  while (split(run.n, run.subEpochs, part + 1) <= position) part++
  return part
}
