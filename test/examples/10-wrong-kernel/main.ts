import assert from 'node:assert/strict'
import { openDevice, tensor, toNumbers } from 'heddle/runtime'
import { check, compare, runOp, tolerance } from 'heddle/testing'
import { difference, neighbour, slip, variance } from './specs/index.js'

const [m, n] = [3, 200]
/** Around 1,000, so that squares need more precision than float32 has. */
const data = Array.from({ length: m * n }, (_, i) => Math.fround(1000 + Math.sin(i * 2.1)))
const expected = Array.from({ length: m }, (_, i) => {
  const v = data.slice(i * n, (i + 1) * n)
  const mean = v.reduce((a, b) => a + b) / n
  return v.reduce((a, b) => a + (b - mean) ** 2, 0) / n
})
const bound = tolerance({ dtype: 'f32', class: 'reduction', length: n })

// #region body
// Step 1: the body as plain JavaScript. It is already wrong here: the author's mistake, found with a breakpoint.
const { y: slipped } = runOp(slip, { x: { shape: [m, n], data } })
assert.ok(!compare(slipped?.data ?? [], expected, bound).passed)
const { y: exact } = runOp(difference, { x: { shape: [m, n], data } })
assert.ok(compare(exact?.data ?? [], expected, bound).passed)
// #endregion

// #region check
// Step 2: the kernel against its body, on sizes and values that heddle chooses.
const report = await check(variance, { device: 'simt' })
assert.equal(report.failed, 0)
// A checker has to find faults: the same kernel against another body.
const wrong = await check({ ...variance, body: slip.body }, { device: 'simt' })
assert.ok(wrong.failed > 0)
const [failure] = wrong.groups.flatMap(({ failures }) => failures)
console.log(`${failure?.name}: ${failure?.detail}`)
// #endregion

// #region own
// Step 3: the kernel on your own data. The body is right, the kernel matches the body, and the result is still wrong:
// float32 does not have enough precision for this form.
const device = await openDevice('simt')
const x = tensor('f32', [m, n], data)
const lost = compare(toNumbers((await device.call(difference, { x })).y), expected, bound)
assert.ok(!lost.passed)
const right = compare(toNumbers((await device.call(variance, { x })).y), expected, bound)
assert.ok(right.passed, right.summary)
console.log(`difference of squares: ${lost.summary}\ntwo walks: ${right.summary}`)
// #endregion

// #region bounds
// Step 4: faults that results do not show. The CPU device reports reads outside of tensors, with the kernel's name and the index.
const outside = device.call(neighbour, { x: tensor('f32', [4], [1, 2, 4, 8]) })
await assert.rejects(outside, { code: 'device.fault', message: /read of x\[4\] is out of bounds/ })
// #endregion
await device.close()
