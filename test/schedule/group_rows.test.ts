/** Axes of contiguous groups become one axis of a row program; groups that are no runs of memory keep their axes. */
import { describe, expect, it } from 'vitest'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { variantLines } from '../../src/schedule/describe.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import { groupRows } from '../../src/schedule/rows/group_rows.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { read } from '../frontend/refuse.js'

/** An op `subject`; inputs and outputs by name, with their shapes. */
const op = (inputs: Readonly<Record<string, string>>, outputs: Readonly<Record<string, string>>, body: string): Kernel => {
  const list = (tensors: Readonly<Record<string, string>>): string =>
    Object.entries(tensors)
      .map(([name, shape]) => `${name}: ${shape.includes('(') ? shape : `tensor('T', '${shape}')`}`)
      .join(', ')
  const shapes = [...Object.values(inputs), ...Object.values(outputs)].map((shape) => shape.split("'").at(-2) ?? shape)
  const dims = [...new Set(shapes.flatMap((shape) => shape.split(' ')))].filter((dim) => dim !== '')
  const text = `import { argmax, exp, layout, max, op, row, rsqrt, sum, tensor } from 'heddle'
const swapped = layout('swapped', ['a', 'b', 'c'], { offset: (i, n) => (i.a * n.c + i.c) * n.b + i.b, size: (n) => n.a * n.b * n.c })
export const subject = op('subject', { dims: [${dims.map((d) => `'${d}'`)}], types: { T: ['f32'] },
  inputs: { ${list(inputs)} }, outputs: { ${list(outputs)} }, body: ${body} })`
  const [kernel] = read(text).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  return kernel
}
const instance = (kernel: Kernel, dims: Readonly<Record<string, number>> = {}) => ({ kernel, types: { T: 'f32' as const }, dims })
const grouped = (kernel: Kernel, dims = {}): Kernel | undefined => {
  const made = groupRows(instance(kernel, dims))?.instance.kernel
  if (made !== undefined) verifyKernel(made, 'merging the axes of groups')
  return made
}

const channels = `({ x, w }, { k, s }) => (b, g, j) => {
  const mean = sum(k, (i) => sum(s, (c) => x(b, g, i, c))) / (k * s)
  const spread = sum(k, (i) => sum(s, (c) => (x(b, g, i, c) - mean) ** 2))
  return { y: row(s, (c) => (x(b, g, j, c) - mean) * rsqrt(spread + 1) * w(g, j)) } }`
const groupNorm = () => op({ x: 'b g k s', w: 'g k' }, { y: 'b g k s' }, channels)

describe('a contiguous group', () => {
  it('is a row, and scales of parts of it are read at quotients', () => {
    const made = grouped(groupNorm())
    expect(made?.rows.map(({ dim }) => dim)).toEqual(['b', 'g'])
    expect(made?.computed && Object.keys(made.computed)).toEqual(['k*s'])
    expect(made?.tensors.map(({ name, dims }) => [name, dims.join(' ')])).toEqual([
      ['x', 'b g k*s'],
      ['w', 'g k'],
      ['y', 'b g k*s'],
    ])
    expect(made && printKernel(made)).toMatch(/x\[b1, g1, t\w*\] - mean\) \* rsqrt\(spread \+ 1\.0\) \* w\[g1, t\w* idiv s\]/)
  })

  it.each([
    [
      'three axes',
      { x: 'n a k s', w: 'k' },
      { y: 'n a k s' },
      `({ x, w }, { a, k, s }) => (n, h, i, j) => ({
      y: x(n, h, i, j) * w(i) / sum(a, (u) => sum(k, (v) => sum(s, (c) => x(n, u, v, c) ** 2))) })`,
    ],
    [
      'a whole matrix, its loops interchanged',
      { x: 'm n' },
      { y: 'm n' },
      `({ x }, { m, n }) => (i, j) => ({
      y: x(i, j) / sum(n, (c) => sum(m, (r) => x(r, c) ** 2)) })`,
    ],
    [
      'rows of one axis',
      { x: 'm n', w: 'n' },
      { y: 'm n' },
      `({ x, w }, { n }) => (i, j) => {
      const top = max(n, (c) => x(i, c))
      return { y: w(j) * exp(x(i, j) - top) / sum(n, (c) => exp(x(i, c) - top)) } }`,
    ],
    [
      'scalars and rows of its points',
      { x: 'b k s', w: 'k', u: 's' },
      { y: 'b k s', mean: "tensor('f32', 'b k')" },
      `({ x, w, u }, { k, s }) => (b, j) => {
      const mean = sum(k, (i) => sum(s, (c) => x(b, i, c)))
      const scale = w(j) * 2
      const v = row(s, (c) => x(b, j, c) * scale)
      return { y: row(s, (c) => v(c) - mean * u(c) + v(c) * j), mean } }`,
    ],
    [
      'no point, only its statistics',
      { x: 'b k s' },
      { y: 'b' },
      `({ x }, { k, s }) => (b) => {
      const mean = sum(k, (i) => sum(s, (c) => x(b, i, c)))
      return { y: sum(k, (i) => sum(s, (c) => (x(b, i, c) - mean) ** 2)) } }`,
    ],
    [
      'a group that lies last in another layout',
      { x: "tensor('T', 'g k s', swapped)" },
      { y: "tensor('T', 'g k s', swapped)" },
      `({ x }, { k, s }) => (g, j, c) => ({
      y: x(g, j, c) / sum(k, (i) => sum(s, (q) => x(g, i, q) ** 2)) })`,
    ],
  ])('of %s gives the same values', (_, inputs, outputs, body) => {
    const kernel = op(inputs, outputs, body)
    const made = grouped(kernel)
    if (made === undefined) throw new Error('no groups')
    const dims = { n: 3, a: 2, b: 3, g: 2, k: 3, s: 5, m: 4 }
    const size = (of: readonly string[]): number => of.reduce((all, dim) => all * (dims[dim as keyof typeof dims] ?? 1), 1)
    const drawn = kernel.tensors
      .filter(({ access }) => access === 'in')
      .map(({ name, dims: of }) => {
        const shape = of.map((dim) => dims[dim as keyof typeof dims])
        return [name, { data: Float64Array.from({ length: size(of) }, (_, i) => ((i * 7) % 11) - 4), shape }] as const
      })
    const merged = Object.fromEntries(Object.keys(made.computed ?? {}).map((dim) => [dim, size(dim.split('*'))]))
    const all = { ...dims, ...merged }
    const inputsOf = (of: Kernel) =>
      Object.fromEntries(
        drawn.map(([name, { data }]) => {
          const tensor = of.tensors.find((each) => each.name === name)
          return [name, { data, shape: (tensor?.dims ?? []).map((dim) => all[dim as keyof typeof all]) }]
        }),
      )
    const flat = (of: Kernel) => Object.values(evaluateKernel(of, inputsOf(of), all)).map(({ data }) => [...data])
    const isSwapped = kernel.tensors.some(({ layout }) => layout.name !== 'row')
    // Values of tensors in another layout are those of another order.
    if (!isSwapped) expect(flat(made)).toEqual(flat(kernel))
    else expect(made.tensors.map(({ dims: of }) => of.at(-1))).toEqual(['s*k', 's*k'])
  })

  it('of fixed extents has a fixed length', () => {
    const made = groupRows(instance(groupNorm(), { k: 4, s: 64 }))
    expect(made?.length).toEqual({ kind: 'const', type: 'i32', value: 256 })
    expect(Object.values(made?.instance.dims ?? {})).toContain(256)
  })
})

describe('axes stay apart', () => {
  it.each([
    [
      'where other axes lie between them',
      { x: 'b p g c' },
      { y: 'b p g c' },
      `({ x }, { p, c }) => (b, i, g, j) => ({
      y: x(b, i, g, j) / sum(p, (q) => sum(c, (k) => x(b, q, g, k) ** 2)) })`,
    ],
    [
      'where another tensor has them in another order',
      { x: 'b k s', r: 'b s k' },
      { y: 'b k s' },
      `({ x, r }, { k, s }) => (b, j, c) => ({
      y: x(b, j, c) * r(b, c, j) / sum(k, (i) => sum(s, (q) => x(b, i, q) ** 2)) })`,
    ],
    [
      'where the result has them in another order',
      { x: 'b k s' },
      { y: 'b s k' },
      `({ x }, { k, s }) => (b, c, j) => ({
      y: x(b, j, c) / sum(k, (i) => sum(s, (q) => x(b, i, q) ** 2)) })`,
    ],
    [
      'where points share statistics of different groups',
      { x: 'b k s' },
      { y: 'b k s' },
      `({ x }, { k, s }) => (b, j, c) => ({
      y: x(b, j, c) / sum(k, (i) => sum(s, (q) => x(b, i, q) ** 2)) * sum(s, (q) => x(b, j, q)) })`,
    ],
    [
      'where a point reads another point',
      { x: 'b k s' },
      { y: 'b k s' },
      `({ x }, { k, s }) => (b, j, c) => ({
      y: x(b, 0, c) * x(b, j, c) / sum(k, (i) => sum(s, (q) => x(b, i, q) ** 2)) })`,
    ],
    [
      'where a place in a row is searched',
      { x: 'b k s' },
      { y: 'b k s' },
      `({ x }, { k, s }) => (b, j, c) => ({
      y: x(b, j, c) - argmax(k, (i) => sum(s, (q) => x(b, i, q))) })`,
    ],
  ])('%s', (_, inputs, outputs, body) => {
    expect(grouped(op(inputs, outputs, body))).toBeUndefined()
  })

  it('in a kernel that replaces its input', () => {
    const kernel = groupNorm()
    const tensors = kernel.tensors.map((t) => (t.name === 'y' ? { ...t, updates: 'x' } : t))
    expect(grouped({ ...kernel, tensors })).toBeUndefined()
  })
})

describe('the launcher', () => {
  it('has one launch for groups that fit, and several for others', () => {
    const mapped = mapKernel(instance(groupNorm()))
    expect(mapped.split?.before).toHaveLength(2)
    expect(mapped.split?.inRows).toMatchObject({ kept: 32768, groups: 264 })
    const lines = variantLines(mapped).map(({ name, when }) => `${name}: ${when}`)
    expect(lines).toContain(
      'subject_rows__f32_block_longest: one launch, for groups of at most 32768 elements (k * s) or at least 264 groups: ' +
        'rows of at most 32768 elements: the group fits the registers of one block of the most threads: it is read once',
    )
    expect(lines.at(-1)).toContain('subject__f32: always')
  })

  it('keeps shorter groups where further tensors take registers', () => {
    const body = channels.replace('({ x, w }', '({ x, w, r }').replace('* w(g, j)', '* w(g, j) + r(b, g, j, c)')
    const mapped = mapKernel(instance(op({ x: 'b g k s', w: 'g k', r: 'b g k s' }, { y: 'b g k s' }, body)))
    expect(mapped.split?.inRows?.kept).toBe(16384)
  })

  it('has several launches alone for groups that are no runs', () => {
    const kernel = op(
      { x: 'b p g c' },
      { y: 'b p g c' },
      '({ x }, { p, c }) => (b, i, g, j) => ({ y: x(b, i, g, j) / sum(p, (q) => sum(c, (k) => x(b, q, g, k) ** 2)) })',
    )
    const { split } = mapKernel(instance(kernel))
    expect(split?.before.length).toBeGreaterThan(0)
    expect(split?.inRows).toBeUndefined()
  })
})

it('a faulty pass is found by the verifier of its kernel', () => {
  const faulty: typeof schedulePasses = {
    ...schedulePasses,
    groupRows: (given) => {
      const made = groupRows(given)
      return made && { ...made, instance: { ...made.instance, kernel: { ...made.instance.kernel, dims: given.kernel.dims } } }
    },
  }
  expect(() => mapKernel(instance(groupNorm()), undefined, undefined, faulty)).toThrow('after merging the axes of groups')
})

it('one launch with other arguments than the op is refused', () => {
  const mapped = mapKernel(instance(groupNorm()))
  const inRows = mapped.split?.inRows
  if (mapped.split === undefined || inRows === undefined) throw new Error('no groups')
  const { instance: own } = inRows.mapped
  const tensors = own.kernel.tensors.filter(({ name }) => name !== 'w')
  const wrong = { ...inRows, mapped: { ...inRows.mapped, instance: { ...own, kernel: { ...own.kernel, tensors } } } }
  expect(() => verifyMapped({ ...mapped, split: { ...mapped.split, inRows: wrong } } as typeof mapped, 'mapping')).toThrow(
    'subject_rows takes in x, out y',
  )
  const longer = { ...inRows, kept: inRows.kept + 1 }
  expect(() => verifyMapped({ ...mapped, split: { ...mapped.split, inRows: longer } } as typeof mapped, 'mapping')).toThrow(
    'no variant keeps groups of 32769 elements',
  )
})

it('a square that is read transposed keeps its axes', () => {
  const of = (at: string) =>
    op(
      { x: 'k k' },
      { y: 'k k' },
      `({ x }, { k }) => (i, j) => ({ y: x(${at}) / (1 + sum(k, (r) => sum(k, (c) => x(r, c) ** 2))) })`,
    )
  expect(grouped(of('i, j'))).toBeDefined()
  expect(grouped(of('j, i'))).toBeUndefined()
})
