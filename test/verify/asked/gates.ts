/** Gates, positions, and random numbers: elementwise kernels that read other elements of their row. */
import { dropoutAdded } from '../../projects/asked/specs/index.js'
import { murmur, noise } from '../../projects/recipes/specs/hashes.js'
import { geglu, rotaryPairs, topP } from '../../projects/recipes/specs/inference.js'
import { topThreeGate } from '../../projects/workshop/specs/gates.js'
import { at, claim, drawn, f32, i32, indices, type Reference, rowsOf, shares, sumOf } from './claims.js'

/** The distribution of a normal number, by the series of Abramowitz and Stegun 7.1.5: no approximation of fitted constants. */
export function normal(x: number): number {
  let [term, sum] = [x, x]
  for (let k = 1; k < 60; k++) {
    term *= -(x ** 2) / (2 * k)
    sum += term / (2 * k + 1)
  }
  return 0.5 + sum / Math.sqrt(2 * Math.PI)
}

/** Shazeer, GLU Variants Improve Transformer (2020): the first half of a row, as gelu, times the second. */
const gatedHalves: Reference = async (device) => {
  const [m, n] = [5, 37]
  const x = drawn(m * 2 * n, 1)
  const { y } = await device.call(geglu, { x: f32([m, 2 * n], x) }, { dims: { n } })
  const halves = (gate: (x: number) => number): number[] =>
    rowsOf(x, 2 * n).flatMap((row) => indices(n).map((c) => gate(at(row, c)) * at(row, n + c)))
  const sigmoid = (value: number): number => value / (1 + Math.exp(-1.702 * value))
  const exact = halves((value) => value * normal(value))
  return [claim('y', y, exact, halves(sigmoid), { class: 'transcendental', scale: 4 })]
}

/** Su et al., RoFormer (2021), equation 34: neighbouring pairs rotated by the position times 10000^(-2i/d); the rest is unchanged. */
const rotary: Reference = async (device) => {
  const [s, d, turned] = [11, 13, 8]
  const [x, position] = [drawn(s * d, 1), indices(s).map((i) => (i * 23) % 61)]
  const { y } = await device.call(rotaryPairs, { x: f32([s, d], x), position: i32([s], position) }, { attrs: { turned } })
  const rotated = (sign: number): number[] =>
    rowsOf(x, d).flatMap((row, i) =>
      row.map((each, c) => {
        if (c >= turned) return each
        const pair = Math.floor(c / 2)
        const angle = at(position, i) * 10_000 ** ((-2 * pair) / turned)
        const [a, b] = [at(row, 2 * pair), at(row, 2 * pair + 1)]
        return c % 2 === 0 ? a * Math.cos(angle) - sign * b * Math.sin(angle) : b * Math.cos(angle) + sign * a * Math.sin(angle)
      }),
    )
  // An angle of up to 61 radians is itself rounded.
  return [claim('y', y, rotated(1), rotated(-1), { class: 'transcendental', scale: 61 * 2 })]
}

/** Shazeer et al., Outrageously Large Neural Networks (2017), equations 3 and 5, with three experts: softmax over the largest. */
const experts: Reference = async (device) => {
  const [m, n] = [7, 29]
  const logits = drawn(m * n, 1)
  const { weights } = await device.call(topThreeGate, { logits: f32([m, n], logits) })
  const gate = (kept: number): number[] =>
    rowsOf(logits, n).flatMap((row) => {
      const least = at(
        [...row].sort((a, b) => b - a),
        kept - 1,
      )
      const powers = row.map((each) => (each >= least ? Math.exp(each) : 0))
      return powers.map((each) => each / sumOf(powers))
    })
  return [claim('weights', weights, gate(3), gate(2), { class: 'transcendental', scale: 4 })]
}

/** Holtzman et al., The Curious Case of Neural Text Degeneration (2020): the fewest tokens that reach the mass. */
const nucleus: Reference = async (device) => {
  const [m, n, mass] = [5, 67, 0.6]
  const p = rowsOf(shares(m * n, 3), n).flatMap((row) => row.map((each) => Math.fround(each / sumOf(row))))
  const { kept } = await device.call(topP, { p: f32([m, n], p) }, { attrs: { mass } })
  const keep = (wanted: number): number[] =>
    rowsOf(p, n).flatMap((row) => {
      const order = indices(n).sort((a, b) => at(row, b) - at(row, a))
      const reached = order.findIndex((_, i) => sumOf(order.slice(0, i + 1).map((c) => at(row, c))) >= wanted * sumOf(row))
      const chosen = new Set(order.slice(0, reached + 1))
      return row.map((each, c) => (chosen.has(c) ? each : 0))
    })
  return [claim('kept', kept, keep(mass), keep(0.55), { class: 'exact' })]
}

/** Appleby, MurmurHash3 (x86, 32 bits), of one word. */
const hash: Reference = async (device) => {
  const n = 1001
  const keys = indices(n).map((i) => Math.imul(i - 500, 0x3779b97f))
  const turn = (x: number, by: number): number => (x << by) | (x >>> (32 - by))
  const plain = (key: number, seed: number): number => {
    let h = seed ^ Math.imul(turn(Math.imul(key, 0xcc9e2d51), 15), 0x1b873593)
    h = ((Math.imul(turn(h, 13), 5) + 0xe6546b64) | 0) ^ 4
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
    return h ^ (h >>> 16)
  }
  const { hash: found } = await device.call(murmur, { key: i32([n], keys) }, { attrs: { seed: 42 } })
  const known = await device.call(murmur, { key: i32([1], [0]) }, { attrs: { seed: 1 } })
  const all = (seed: number): number[] => keys.map((key) => plain(key, seed))
  return [
    claim('hashes', found, all(42), all(41), { class: 'exact' }),
    // Published for the empty word of four bytes.
    claim('a published hash', known.hash, [0x78ed212d], [0x2362f9de], { class: 'exact' }),
  ]
}

/** O'Neill, PCG (2014): one step of RXS-M-XS on 32 bits, its upper 24 as a number; in integers of any length. */
function pcgNumber(counter: bigint, multiplier: bigint): number {
  const word = (value: bigint): bigint => BigInt.asUintN(32, value)
  const state = word(word(counter) * multiplier + 2_891_336_453n)
  const mixed = word(((state >> ((state >> 28n) + 4n)) ^ state) * 277_803_737n)
  return Number(((mixed >> 22n) ^ mixed) >> 8n) / 2 ** 24
}

const pcg: Reference = async (device) => {
  const [m, n] = [3, 1021]
  const seeds = [-7, 0, 2 ** 31 - 1]
  const { y } = await device.call(noise, { state: i32([m], seeds) }, { dims: { n } })
  const draws = (multiplier: bigint): number[] =>
    seeds.flatMap((seed) => indices(n).map((c) => pcgNumber(BigInt(seed) + BigInt(c), multiplier)))
  return [claim('y', y, draws(747_796_405n), draws(747_796_401n), { class: 'exact' })]
}

/** Srivastava et al., Dropout (2014), scaled while training; words as O'Neill's PCG above, one for each position. */
const dropout: Reference = async (device) => {
  const [m, n, rate, seed] = [5, 203, 0.25, 77]
  const [x, before] = [drawn(m * n, 1), drawn(m * n, 2)]
  const { y } = await device.call(dropoutAdded, { x: f32([m, n], x), before: f32([m, n], before) }, { attrs: { rate, seed } })
  const of = (first: number): number[] =>
    x.map((each, i) => at(before, i) + (pcgNumber(BigInt(first + i), 747_796_405n) < rate ? 0 : each / (1 - rate)))
  return [claim('y', y, of(seed), of(seed + 1), { class: 'elementwise', scale: 5 })]
}

export const gates = { gatedHalves, rotary, experts, nucleus, hash, pcg, dropout }
