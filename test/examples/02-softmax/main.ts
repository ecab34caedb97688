import assert from 'node:assert/strict'
import { openDevice, tensor, toNumbers } from 'heddle/runtime'
import { compare, tolerance } from 'heddle/testing'
import { crossEntropy, softmax } from './specs/index.js'

const device = await openDevice('simt')
const drawn = (count: number) => Array.from({ length: count }, (_, i) => Math.fround(4 * Math.sin(i * 2.3)))
const softmaxOf = (values: number[], temperature: number): number[] => {
  const top = Math.max(...values)
  const e = values.map((value) => Math.exp((value - top) / temperature))
  const total = e.reduce((a, b) => a + b)
  return e.map((each) => each / total)
}

// #region lengths
for (const n of [1, 7, 32, 1000, 5000]) {
  const x = drawn(3 * n)
  const { y } = await device.call(softmax, { x: tensor('f32', [3, n], x) }, { attrs: { temperature: 2 } })
  const expected = [0, 1, 2].flatMap((m) => softmaxOf(x.slice(m * n, (m + 1) * n), 2))
  const found = compare(toNumbers(y), expected, tolerance({ dtype: 'f32', class: 'reduction', length: n }))
  assert.ok(found.passed, found.summary)
}
// #endregion

// #region loss
const [m, n] = [4, 50]
const logits = drawn(m * n)
const labels = [3, -100, 49, 0]
const { loss } = await device.call(crossEntropy, {
  logits: tensor('f32', [m, n], logits),
  labels: tensor('i32', [m], labels),
})
// #endregion
const losses = labels.map((label, i) => {
  const values = logits.slice(i * n, (i + 1) * n)
  return label === -100 ? 0 : -Math.log(softmaxOf(values, 1)[label] ?? Number.NaN)
})
const found = compare(toNumbers(loss), losses, tolerance({ dtype: 'f32', class: 'reduction', length: n, scale: 4 }))
assert.ok(found.passed, found.summary)

// #region outside
// A label outside the row would read foreign memory on a GPU. The CPU device reports it.
const outside = device.call(crossEntropy, { logits: tensor('f32', [1, n], drawn(n)), labels: tensor('i32', [1], [50]) })
await assert.rejects(outside, { code: 'device.fault' })
// #endregion
console.log(`losses ${Array.from(loss.data, (each) => each.toFixed(4)).join(' ')}: ${found.summary}`)
await device.close()
