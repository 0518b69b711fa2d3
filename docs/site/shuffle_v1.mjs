// shuffle-v1 for 1 <= n <= 2**53: the bits of indexplan.Shuffle(n, seed), by specification.md.
// What is outside its range is a RangeError.

// The words of a x b, both below 2**32; every product here is below 2**53.
const low = (x, y) => Math.imul(x, y) >>> 0
const high = (x, y) =>
  Math.floor((x * (y >>> 16) + Math.floor((x * (y & 0xffff)) / 65536)) / 65536)

// The whole part of x / y
const whole = (x, y) => (x - (x % y)) / y

// A whole number in [least, most]; of the type number it is exact up to 2**53
const isWhole = (value, least, most) =>
  Number.isInteger(value) && value >= least && value <= most

const refused = (what, rule, got) =>
  new RangeError(`${what} must be a whole number from ${rule}; got ${String(got)}`)

// A number's words of 32 bits, the lowest first; 0 has one.
function wordsOf(number) {
  const words = []
  for (let rest = BigInt(number); rest > 0n || words.length === 0; rest >>= 32n)
    words.push(Number(rest & 0xffffffffn))
  return words
}

// numpy.random.SeedSequence(seed, spawn_key).generate_state(count)
export function keyWords(seed, spawnKey, count) {
  let factor = 0x43b0d7e5
  const hashed = (word, multiplier) => {
    const mixed = word ^ factor
    factor = low(factor, multiplier)
    const value = low(mixed, factor)
    return (value ^ (value >>> 16)) >>> 0
  }
  const mixed = (x, y) => {
    const value = (low(0xca01f9dd, x) - low(0x4973f715, y)) >>> 0
    return (value ^ (value >>> 16)) >>> 0
  }
  const entropy = [...wordsOf(seed), 0, 0, 0].slice(0, 4)
  const pool = entropy.map(word => hashed(word, 0x931e8875))
  for (let from = 0; from < 4; from++)
    for (let to = 0; to < 4; to++)
      if (from !== to) pool[to] = mixed(pool[to], hashed(pool[from], 0x931e8875))
  for (const word of spawnKey.flatMap(wordsOf))
    for (let to = 0; to < 4; to++) pool[to] = mixed(pool[to], hashed(word, 0x931e8875))
  factor = 0x8b51f9dd
  return Array.from({ length: count }, (_, i) => hashed(pool[i % 4], 0x58f38ded))
}

export class Shuffle {
  constructor(n, seed, epoch) {
    const isSeed =
      typeof seed === "bigint" ? seed >= 0n && seed < 2n ** 128n : isWhole(seed, 0, 2 ** 53 - 1)
    if (!isWhole(n, 1, 2 ** 53)) throw refused("n", "1 to 2**53", n)
    if (!isSeed) throw refused("seed", "0 to 2**53 - 1, or a BigInt to 2**128 - 1", seed)
    if (!isWhole(epoch, 0, 2 ** 32 - 1)) throw refused("epoch", "0 to 2**32 - 1", epoch)
    let a = Math.ceil(Math.sqrt(n)) // off by one at most
    while ((a - 1) * (a - 1) >= n) a--
    while (a * a < n) a++
    const b = whole(n - 1, a) + 1
    this.n = n
    this.a = a
    this.b = b + (b % 2)
    this.last = [whole(n - 1, this.b), (n - 1) % this.b]
    this.rounds = n < 2 ** 12 ? 24 : n < 2 ** 20 ? 12 : 8
    this.words = keyWords(seed, [0, epoch, n], 2 * this.rounds)
  }

  // The round function of x: a number in [0, m)
  f(x, round, m) {
    let t = (x ^ this.words[2 * round]) >>> 0
    t = (low(t, 0xd2511f53) ^ high(t, 0xd2511f53) ^ this.words[2 * round + 1]) >>> 0
    return high((low(t, 0xcd9e8d57) ^ high(t, 0xcd9e8d57)) >>> 0, m)
  }

  // The halves stay apart between the turns: together they may be a number past 2**53.
  index(position) {
    const { n, a, b, last } = this
    if (!isWhole(position, 0, n - 1)) throw refused("position", `0 to ${n - 1}`, position)
    let right = position % b
    let left = (position - right) / b
    do {
      for (let round = 0; round < this.rounds; round += 2) {
        left = (left + this.f(right, round, a)) % a
        right = (right + this.f(left, round + 1, b)) % b
      }
    } while (left > last[0] || (left === last[0] && right > last[1]))
    return left * b + right
  }

  position(index) {
    const { n, a, b, last } = this
    if (!isWhole(index, 0, n - 1)) throw refused("index", `0 to ${n - 1}`, index)
    let right = index % b
    let left = (index - right) / b
    do {
      for (let round = this.rounds - 2; round >= 0; round -= 2) {
        right = (right - this.f(left, round + 1, b) + b) % b
        left = (left - this.f(right, round, a) + a) % a
      }
    } while (left > last[0] || (left === last[0] && right > last[1]))
    return left * b + right
  }
}
