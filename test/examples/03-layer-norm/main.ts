import assert from 'node:assert/strict'
import { openDevice, tensor, toNumbers } from 'heddle/runtime'
import { compare, tolerance } from 'heddle/testing'
import { sublayer } from './specs/index.js'

const [m, n] = [6, 768]
const drawn = (count: number, seed: number) => Array.from({ length: count }, (_, i) => Math.fround(2 * Math.sin(seed + i * 0.7)))
const [x, before, gamma, beta] = [drawn(m * n, 1), drawn(m * n, 2), drawn(n, 3), drawn(n, 4)]

const expected = Array.from({ length: m }, (_, i) => {
  const v = Array.from({ length: n }, (_, c) => (x[i * n + c] ?? 0) + (before[i * n + c] ?? 0))
  const mean = v.reduce((a, b) => a + b) / n
  const variance = v.reduce((a, b) => a + (b - mean) ** 2, 0) / n
  return v.map((each, c) => ((each - mean) / Math.sqrt(variance + 1e-5)) * (gamma[c] ?? 0) + (beta[c] ?? 0))
}).flat()

// #region load
const device = await openDevice('simt')
const weights = { gamma: tensor('f32', [n], gamma), beta: tensor('f32', [n], beta) }
for (const plan of ['unfused', 'fused', 'by-warp']) {
  const model = await device.load(sublayer, { plan, weights })
  const { normed } = await model.run({ x: tensor('f32', [m, n], x), before: tensor('f32', [m, n], before) })
  const found = compare(toNumbers(normed), expected, tolerance({ dtype: 'f32', class: 'reduction', length: n, scale: 4 }))
  assert.ok(found.passed, found.summary)
  console.log(`${plan}: ${found.summary}`)
}
await device.close()
// #endregion
