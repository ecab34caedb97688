/** Checks run the loops of kernels beside their IR: those of the compiler agree, and planted faults are reported with their element. */
import { expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { manifestSchema } from '../../src/emit/manifest/manifest.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { type Loop, mapLoops } from '../../src/loop/ir.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { loopFailure } from '../../src/verify/loops.js'
import { read } from '../frontend/refuse.js'

const { kernels } = read(`import { op, sum, tensor } from 'heddle'
export const rows = op('rows', {
  dims: ['m', 'n'], types: { T: ['f16'] },
  inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('f32', 'm') },
  body: ({ x }, { n }) => (m) => ({ y: sum(n, (c) => x(m, c)) }),
})
export const columns = op('columns', {
  dims: ['m', 'n'], inputs: { x: tensor('f32', 'm n') }, outputs: { y: tensor('f32', 'n') },
  body: ({ x }, { m }) => (c) => ({ y: sum(m, (r) => x(r, c)) }),
})
export const transposed = op('transposed', {
  dims: ['m', 'n'], types: { T: ['f16'] },
  inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'n m') },
  body: ({ x }) => (j, i) => ({ y: x(i, j) }),
})
// Two launches, or one for rows of the merged axes.
export const normed = op('normed', {
  dims: ['b', 'c', 's'], types: { T: ['f16'] },
  inputs: { x: tensor('T', 'b c s') }, outputs: { y: tensor('T', 'b c s') },
  body: ({ x }, { c, s }) => (b, i, j) => ({ y: x(b, i, j) / (1 + sum(c, (k) => sum(s, (t) => x(b, k, t) ** 2))) }),
})
`)
const entries = manifestSchema.parse(JSON.parse(generate(kernels).get('manifest.json') ?? '')).kernels
const run = (kernel: Kernel, passes?: typeof loopPasses) => {
  const entry = entries.find(({ op }) => op === kernel.name)
  if (entry === undefined) throw new Error('fixture')
  return loopFailure(kernel, entry, undefined, passes)
}

it.each(kernels)('$name is what its body computes', async (kernel) => {
  expect(await run(kernel)).toBeUndefined()
})

/** A fault in what threads store: the value, or the place. */
const faulty = (change: (loop: Loop) => readonly Loop[]): typeof loopPasses => ({
  ...loopPasses,
  lower: (...given) => mapLoops(loopPasses.lower(...given), change),
})

it.each(kernels)('$name without its stores is reported', async (kernel) => {
  const found = await run(
    kernel,
    faulty((loop) => (loop.kind === 'store' || loop.kind === 'storeChunk' ? [] : [loop])),
  )
  expect(found).toMatchObject({ passed: false, name: expect.stringMatching(/ integer, by its loops$/) })
  expect(found?.detail).toMatch(/y\[0\]: expected -?[\d.e-]+, got NaN from the loops of walk/)
})

it.each(kernels.filter(({ name }) => name !== 'normed'))(
  '$name with loops that the verifier refuses is reported',
  async (kernel) => {
    const found = await run(
      kernel,
      faulty((loop) => (loop.kind === 'work' ? [{ ...loop, digits: [...loop.digits, ...loop.digits.slice(-1)] }] : [loop])),
    )
    expect(found?.detail).toMatch(/^internal: lowering to loops: \w+ is divided twice$/)
  },
)
