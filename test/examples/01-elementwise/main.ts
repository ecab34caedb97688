import assert from 'node:assert/strict'
import { openDevice, tensor, toNumbers } from 'heddle/runtime'
import { compare, tolerance } from 'heddle/testing'
import { dropout, swiglu } from './specs/index.js'

const [m, n] = [5, 300]
const drawn = (seed: number) => Array.from({ length: m * n }, (_, i) => Math.fround(3 * Math.sin(seed + i * 1.7)))
const [gate, up] = [drawn(1), drawn(2)]

// #region call
const device = await openDevice('simt')
const { y } = await device.call(swiglu, { gate: tensor('f32', [m, n], gate), up: tensor('f32', [m, n], up) })
// #endregion

// #region check
const expected = gate.map((x, i) => (x / (1 + Math.exp(-x))) * (up[i] ?? 0))
const found = compare(toNumbers(y), expected, tolerance({ dtype: 'f32', class: 'transcendental', scale: 3 }))
assert.ok(found.passed, found.summary)
// #endregion

// #region half
const half = await device.call(swiglu, { gate: tensor('f16', [m, n], gate), up: tensor('f16', [m, n], up) })
assert.equal(half.y.dtype, 'f16')
// #endregion
const [stored, other] = [toNumbers(tensor('f16', [m, n], gate)), toNumbers(tensor('f16', [m, n], up))]
const rounded = Array.from(stored, (x, i) => (x / (1 + Math.exp(-x))) * (other[i] ?? 0))
const near = compare(toNumbers(half.y), rounded, tolerance({ dtype: 'f16', class: 'transcendental', scale: 3 }))
assert.ok(near.passed, near.summary)

// #region dropout
const x = tensor('f32', [m, n], up)
const dropped = await device.call(dropout, { x }, { attrs: { share: 0.25, seed: 7 } })
const again = await device.call(dropout, { x }, { attrs: { share: 0.25, seed: 7 } })
assert.deepEqual(dropped, again)
// #endregion
const survivors = dropped.kept.data.reduce((sum, kept) => sum + kept, 0)
assert.ok(Math.abs(survivors / (m * n) - 0.75) < 0.05)
for (const [i, value] of dropped.y.data.entries()) {
  assert.ok(dropped.kept.data[i] === 0 ? value === 0 : value === Math.fround((up[i] ?? 0) / 0.75))
}
console.log(`swiglu: ${found.summary}; dropout kept ${survivors} of ${m * n}`)
await device.close()
