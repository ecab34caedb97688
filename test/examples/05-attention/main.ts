import assert from 'node:assert/strict'
import { openDevice, tensor, toNumbers } from 'heddle/runtime'
import { compare, tolerance } from 'heddle/testing'
import { biased, local } from './specs/index.js'

const [b, s, h, d] = [2, 50, 2, 16]
const drawn = (count: number, seed: number) => Array.from({ length: count }, (_, i) => Math.fround(Math.sin(seed + i * 1.9)))
const values = { query: drawn(b * s * h * d, 1), key: drawn(b * s * h * d, 2), value: drawn(b * s * h * d, 3) }
const slopes = [0.5, 0.125]

/** Attention in its textbook form, with `score` between the scaled matmul and the softmax. */
const attention = (score: (x: number, head: number, query: number, key: number) => number): number[] => {
  const at = (list: number[], i: number, place: number, head: number, c: number) =>
    list[((i * h + head) * s + place) * d + c] ?? 0
  const result: number[] = []
  for (let i = 0; i < b; i++)
    for (let head = 0; head < h; head++)
      for (let q = 0; q < s; q++) {
        const logits = Array.from({ length: s }, (_, key) => {
          let product = 0
          for (let c = 0; c < d; c++) product += at(values.query, i, q, head, c) * at(values.key, i, key, head, c)
          return score(product * 0.25, head, q, key)
        })
        const top = Math.max(...logits)
        const e = logits.map((x) => Math.exp(x - top))
        const total = e.reduce((sum, x) => sum + x)
        for (let c = 0; c < d; c++)
          result.push(e.reduce((sum, x, key) => sum + (x / total) * at(values.value, i, key, head, c), 0))
      }
  return result
}

// #region run
const device = await openDevice('simt')
const inputs = {
  query: tensor('f32', [b, h, s, d], values.query),
  key: tensor('f32', [b, h, s, d], values.key),
  value: tensor('f32', [b, h, s, d], values.value),
}
const bound = tolerance({ dtype: 'f32', class: 'attention', length: d })
for (const plan of ['unfused', 'one-kernel'])
  for (const window of [1, 16, 100]) {
    const model = await device.load(local, { plan, weights: {}, attrs: { window }, dtype: 'f32' })
    const { y } = await model.run(inputs)
    const expected = attention((x, _, q, key) => (key <= q && q - key < window ? x : -Infinity))
    const found = compare(toNumbers(y), expected, bound)
    assert.ok(found.passed, found.summary)
    console.log(`${plan}, window ${window}: ${found.summary}`)
  }
// #endregion
const model = await device.load(biased, { plan: 'one-kernel', weights: {}, dtype: 'f32' })
const { y } = await model.run({ ...inputs, slopes: tensor('f32', [h], slopes) })
const expected = attention((x, head, q, key) => 20 * Math.tanh(x / 20) + (slopes[head] ?? 0) * (key - q))
const found = compare(toNumbers(y), expected, bound)
assert.ok(found.passed, found.summary)
console.log(`slopes and cap: ${found.summary}`)
await device.close()
