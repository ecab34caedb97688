import assert from 'node:assert/strict'
import { openDevice, tensor, toNumbers } from 'heddle/runtime'
import { compare, tolerance } from 'heddle/testing'
import { linear } from './specs/index.js'

const [m, n, k] = [6, 24, 64]
const drawn = (count: number, seed: number) =>
  Array.from({ length: count }, (_, i) => Math.fround(Math.sin(seed + i * 1.1 + i * i * 0.01)))
const given = { x: drawn(m * k, 1), weight: drawn(n * k, 2), by: drawn(n, 3) }

// #region meaning
/** The values of a list as int8 represents them: the largest magnitude maps to 127, ties round to the even integer. */
const even = (x: number): number => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x))
const kept = (values: number[], largest = Math.max(...values.map(Math.abs))): number[] =>
  values.map((each) => (Math.max(-127, Math.min(127, even(each * (127 / largest)))) * largest) / 127)
const rows = (values: number[]): number[][] =>
  Array.from({ length: values.length / k }, (_, i) => values.slice(i * k, (i + 1) * k))
const multiplied = (x: number[][], weight: number[][]): number[] =>
  x.flatMap((a) => weight.map((w, c) => a.reduce((sum, each, i) => sum + each * (w[i] ?? 0), 0) + (given.by[c] ?? 0)))
// #endregion

const weight = rows(given.weight).map((row) => kept(row))
const largest = Math.max(...given.x.map(Math.abs))
const expected = {
  unfused: multiplied(rows(given.x), rows(given.weight)),
  calibrated: multiplied(
    rows(given.x).map((row) => kept(row, largest)),
    weight,
  ),
  dynamic: multiplied(
    rows(given.x).map((row) => kept(row)),
    weight,
  ),
  'weight-only': multiplied(rows(given.x), weight),
}

// #region load
const device = await openDevice('simt')
const weights = { weight: tensor('f32', [n, k], given.weight), by: tensor('f32', [n], given.by) }
for (const [plan, wanted] of Object.entries(expected)) {
  const scales = plan === 'calibrated' ? { x: largest } : undefined
  const model = await device.load(linear, { plan, weights, scales })
  const { y } = await model.run({ x: tensor('f32', [m, k], given.x) })
  const found = compare(toNumbers(y), wanted, tolerance({ dtype: 'f32', class: 'matmul', length: k }))
  assert.ok(found.passed, `${plan}: ${found.summary}`)
  const error = Math.max(...wanted.map((each, i) => Math.abs(each - (expected.unfused[i] ?? 0))))
  console.log(`${plan}: ${found.summary}; farthest from floats ${error.toFixed(4)}`)
}
await device.close()
// #endregion
