import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { openDevice, tensor, toNumbers } from 'heddle/runtime'
import { compare, tolerance } from 'heddle/testing'
import { rmsNorm } from './specs/index.js'

// #region entries
// Measurements of `heddle tune`: for kernels, storage types, lengths and devices the schedule that beat the rules, if one did.
const { entries } = JSON.parse(await readFile('specs/tuning.json', 'utf8'))
console.log(`${entries.length} entries`)
// #endregion

const [m, n] = [5, 768]
const x = Array.from({ length: m * n }, (_, i) => Math.fround(Math.sin(i * 1.3) * 2))
const gamma = Array.from({ length: n }, (_, i) => Math.fround(Math.cos(i)))
const expected = x.map((each, i) => {
  const row = x.slice(Math.floor(i / n) * n, (Math.floor(i / n) + 1) * n)
  return (each / Math.sqrt(row.reduce((sum, v) => sum + v * v, 0) / n + 1e-6)) * (gamma[i % n] ?? 0)
})

const device = await openDevice('simt')
const { y } = await device.call(rmsNorm, { x: tensor('f32', [m, n], x), gamma: tensor('f32', [n], gamma) })
const found = compare(toNumbers(y), expected, tolerance({ dtype: 'f32', class: 'reduction', length: n, scale: 4 }))
assert.ok(found.passed, found.summary)
console.log(`rms_norm: ${found.summary}`)
await device.close()
