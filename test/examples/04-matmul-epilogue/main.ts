import assert from 'node:assert/strict'
import { openDevice, tensor, toNumbers } from 'heddle/runtime'
import { compare, tolerance } from 'heddle/testing'
import { feedForward } from './specs/index.js'

const [m, n, k] = [7, 40, 96]
const drawn = (count: number, seed: number) => Array.from({ length: count }, (_, i) => Math.fround(Math.sin(seed + i * 1.3) / 4))
const given = { x: drawn(m * n, 1), up: drawn(k * n, 2), upBias: drawn(k, 3), down: drawn(n * k, 4), downBias: drawn(n, 5) }

/** Row i of `x` times row j of `w`, both of `length` elements. */
const dot = (x: number[], i: number, w: number[], j: number, length: number): number =>
  Array.from({ length }, (_, c) => (x[i * length + c] ?? 0) * (w[j * length + c] ?? 0)).reduce((a, b) => a + b)
/** The Gaussian error function by its series, whose terms fall fast for arguments below 2. */
const erf = (x: number): number => {
  let [term, total] = [x, x]
  for (let i = 1; i < 60; i++) {
    term *= (-x * x) / i
    total += term / (2 * i + 1)
  }
  return (2 / Math.sqrt(Math.PI)) * total
}
const expected = Array.from({ length: m }, (_, i) => {
  const inner = Array.from({ length: k }, (_, j) => {
    const sum = dot(given.x, i, given.up, j, n) + (given.upBias[j] ?? 0)
    return (sum / 2) * (1 + erf(sum / Math.SQRT2))
  })
  return Array.from(
    { length: n },
    (_, c) => dot(inner, 0, given.down, c, k) + (given.downBias[c] ?? 0) + (given.x[i * n + c] ?? 0),
  )
}).flat()

// #region load
const device = await openDevice('simt')
const weights = {
  up: tensor('f32', [k, n], given.up),
  upBias: tensor('f32', [k], given.upBias),
  down: tensor('f32', [n, k], given.down),
  downBias: tensor('f32', [n], given.downBias),
}
for (const plan of ['unfused', 'fused']) {
  const model = await device.load(feedForward, { plan, weights })
  const { y } = await model.run({ x: tensor('f32', [m, n], given.x) })
  const found = compare(toNumbers(y), expected, tolerance({ dtype: 'f32', class: 'matmul', length: n + k }))
  assert.ok(found.passed, found.summary)
  console.log(`${plan}: ${found.summary}`)
}
await device.close()
// #endregion
