/** Elementwise kernels as one row of all elements, for rows that are no whole chunks. */
import { describe, expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { partCosts } from '../../src/cost/kernel.js'
import type { DType } from '../../src/ir/dtype.js'
import { evaluateKernel, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { evaluateMapped } from '../../src/loop/evaluate_mapped.js'
import { describeSchedule, variantLines } from '../../src/schedule/describe.js'
import { mapKernel } from '../../src/schedule/map.js'
import type { MappedKernel } from '../../src/schedule/mapped.js'
import { oneRow } from '../../src/schedule/rows/one_row.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { read } from '../frontend/refuse.js'

/** An op `subject` over tensors given by their shapes. */
const op = (
  inputs: Readonly<Record<string, string>>,
  outputs: Readonly<Record<string, string>>,
  body: string,
  facts = '',
): Kernel => {
  const list = (tensors: Readonly<Record<string, string>>): string =>
    Object.entries(tensors)
      .map(([name, shape]) => `${name}: ${shape.includes('(') ? shape : `tensor('T', '${shape}')`}`)
      .join(', ')
  const shapes = [...Object.values(inputs), ...Object.values(outputs)].map((shape) => shape.split("'").at(-2) ?? shape)
  const dims = [...new Set(shapes.flatMap((shape) => shape.split(' ')))].filter((dim) => dim !== '')
  const text = `import { op, row, sum, tensor } from 'heddle'
export const subject = op('subject', { dims: [${dims.map((d) => `'${d}'`)}], types: { T: ['f32', 'f16'] },
  inputs: { ${list(inputs)} }, outputs: { ${list(outputs)} }, ${facts} body: ${body} })`
  const [kernel] = read(text).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  return kernel
}
const instance = (kernel: Kernel, T: DType = 'f16') => ({ kernel, types: { T }, dims: {} })
const map = (kernel: Kernel): MappedKernel => mapKernel(instance(kernel))

const bias = op({ p: 'a k', c: 'k' }, { z: 'a k' }, '({ p, c }) => (i, j) => ({ z: p(i, j) + c(j) })')
const subjects: Readonly<Record<string, Kernel>> = {
  bias,
  'a row that is stored': op(
    { p: 'a k', c: 'k' },
    { z: 'a k' },
    '({ p, c }, { k }) => (i) => ({ z: row(k, (j) => p(i, j) * c(j)) })',
  ),
  'a factor of a row': op(
    { p: 'a k', s: 'a' },
    { z: 'a k' },
    '({ p, s }) => (i, j) => { const f = s(i) + 1; return { z: p(i, j) * f } }',
  ),
  channels: op(
    { p: 'a g h w', s: 'g', t: 'g h' },
    { z: 'a g h w' },
    '({ p, s, t }) => (i, j, r, c) => ({ z: p(i, j, r, c) * s(j) + t(j, r) })',
  ),
  'two results': op(
    { p: 'a k', c: 'k', s: 'a' },
    { z: 'a k', q: "tensor('i8', 'a k')" },
    '({ p, c, s }) => (i, j) => ({ z: p(i, j) + c(j), q: p(i, j) * s(i) })',
  ),
  'an outer sum': op({ p: 'a', c: 'k' }, { z: 'a k' }, '({ p, c }) => (i, j) => ({ z: p(i) + c(j) })'),
  'planes that are permuted': op(
    { p: 'a g w h', s: 'g' },
    { z: 'a w h g' },
    '({ p, s }) => (i, c, r, j) => ({ z: p(i, j, c, r) + s(j) })',
  ),
  'planes that are transposed': op({ p: 'a g k' }, { z: 'a k g' }, '({ p }) => (i, c, j) => ({ z: 2 * p(i, j, c) })'),
  'a place': op({ p: 'a k' }, { z: 'a k' }, '({ p }) => (i, j) => ({ z: j <= i ? p(i, j) : 0 })'),
}

/** Small numbers, of which sums and products are exact. */
function inputsOf(kernel: Kernel, dims: Readonly<Record<string, number>>): Record<string, HostTensor> {
  const inputs = kernel.tensors.filter(({ access }) => access === 'in')
  return Object.fromEntries(
    inputs.map(({ name, dims: own }, at) => {
      const shape = own.map((dim) => dims[dim] ?? 1)
      const length = shape.reduce((all, each) => all * each, 1)
      return [name, { data: Float64Array.from({ length }, (_, i) => ((i * 37 + 11 + 13 * at) % 41) / 4 - 5), shape }]
    }),
  )
}

/** Results of the loops, after the last pass, of the launch over one row. */
const rowOutputs = (mapped: MappedKernel, dims: Readonly<Record<string, number>>) => {
  const inRow = mapped.split?.inRow ?? expect.fail('a launch over one row')
  return evaluateMapped(inRow.mapped, { tensors: inputsOf(mapped.instance.kernel, dims), dims, attrs: {} })
}
const dataOf = (outputs: Readonly<Record<string, HostTensor>>) =>
  Object.entries(outputs).map(([name, { data }]) => [name, Array.from(data, Number)])

describe('one row', () => {
  it('has the axes of others as quotients and remainders', () => {
    const made = oneRow(instance(bias)) ?? expect.fail('one row')
    verifyKernel(made.instance.kernel, 'a test')
    expect(printKernel(made.instance.kernel)).toContain('z[t] = p[t] + c[t % k]')
    expect(made.instance.kernel.computed).toHaveProperty('a*k')
  })

  it.each(Object.entries(subjects))('of %s has the values of the body', (_, kernel) => {
    const mapped = map(kernel)
    verifyMapped(mapped, 'a test')
    for (const dims of [
      { a: 3, g: 2, h: 2, w: 3, k: 7 },
      { a: 5, g: 3, h: 1, w: 1, k: 1 },
      { a: 2, g: 5, h: 3, w: 7, k: 19 },
    ]) {
      const wanted = evaluateKernel(kernel, inputsOf(kernel, dims), dims)
      const made = rowOutputs(mapped, dims)
      expect(made.map(({ walk }) => walk)).toEqual(['single'])
      for (const { outputs } of made) expect(dataOf(outputs)).toEqual(dataOf(wanted))
    }
  })

  it('is not that of another kernel', () => {
    const other = map(subjects['a factor of a row'] ?? expect.fail())
    const dims = { a: 3, k: 7 }
    const tensors = { ...inputsOf(other.instance.kernel, dims), c: { data: new Float64Array(7), shape: [7] } }
    const wanted = dataOf(evaluateKernel(bias, tensors, dims))
    expect(dataOf(rowOutputs(other, dims)[0]?.outputs ?? {})).not.toEqual(wanted)
    const split = { ...(map(bias).split ?? expect.fail()), inRow: other.split?.inRow ?? expect.fail() }
    expect(() => verifyMapped({ ...map(bias), split }, 'a test')).toThrow('takes in p, in s, out z')
  })

  it.each([
    ['accesses that are all runs', op({ p: 'a k' }, { z: 'a k' }, '({ p }) => (i, j) => ({ z: 2 * p(i, j) })')],
    ['a permutation of runs', op({ p: 'g a k' }, { z: 'a g k' }, '({ p }) => (i, j, c) => ({ z: 2 * p(j, i, c) })')],
    ['a square that is read transposed', op({ p: 'k k' }, { z: 'k k' }, '({ p }) => (i, j) => ({ z: p(i, j) + p(j, i) })')],
    [
      'rows that are gathered',
      op(
        { p: 'v k', at: "tensor('i32', 'a')" },
        { z: 'a k' },
        '({ p, at }) => (i, j) => { const r = at(i); return { z: p(r, j) } }',
        "facts: { at: { index: 'v' } },",
      ),
    ],
    [
      'sums of elements',
      op({ p: 'a k', c: 'v k' }, { z: 'a k' }, '({ p, c }, { v }) => (i, j) => ({ z: p(i, j) + sum(v, (r) => c(r, j)) })'),
    ],
    [
      'rows of whole chunks by facts',
      op(
        { p: 'a k', c: 'k' },
        { z: 'a k' },
        '({ p, c }) => (i, j) => ({ z: p(i, j) + c(j) })',
        'facts: { k: { multipleOf: 8 } },',
      ),
    ],
  ])('is none for %s', (_, kernel) => expect(map(kernel).split?.inRow).toBeUndefined())

  it('is described and priced for the rows that it is for', () => {
    const mapped = map(bias)
    expect(variantLines(mapped)[0]?.when).toBe('all elements as one row of a * k, where 8 does not divide k: always')
    expect(describeSchedule(mapped)).toContain('subject_row__f16: elementwise, one row, chunks of 8')
    const parts = (k: number) => partCosts(mapped, { dims: { a: 8192, k }, attrs: {} }, costDevice('h200'))
    expect(parts(3001).map(({ name }) => name)).toEqual(['subject_row'])
    expect(parts(3008).map(({ name }) => name)).toEqual(['subject'])
    expect(parts(3001)[0]?.seconds).toBeLessThan(1.3 * (parts(3008)[0]?.seconds ?? 0))
  })

  it('has small planes of kernels that load tiles', () => {
    const mapped = map(subjects['planes that are transposed'] ?? expect.fail())
    const when = 'all elements as one row of a * k * g, where g is at most 4 and planes of k x g have at most 1024 places: always'
    expect(variantLines(mapped).map((line) => line.when)).toEqual(expect.arrayContaining(['g = 2: always', when]))
    const names = (k: number, g: number) =>
      partCosts(mapped, { dims: { a: 4096, k, g }, attrs: {} }, costDevice('h200')).map(({ name }) => name)
    expect(names(256, 4)).toEqual(['subject_row'])
    expect(names(257, 4)).toEqual(['subject'])
    expect(names(50, 5)).toEqual(['subject'])
  })
})
