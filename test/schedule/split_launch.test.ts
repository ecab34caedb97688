/** Reductions that points share or that chain over several axes are moved into launches in front, and no others. */
import { describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { describeSchedule, variantLines } from '../../src/schedule/describe.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import { splitLaunch } from '../../src/schedule/rows/split_launch.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { read } from '../frontend/refuse.js'

const op = (body: string, dims: string, x: string, y: string, more = ''): Kernel => {
  const text = `import { exp, fold, histogram, idiv, max, op, row, rsqrt, scan, sum, tensor, toFloat, toInt, topK } from 'heddle'
export const subject = op('subject', { dims: [${dims.split(' ').map((d) => `'${d}'`)}], types: { T: ['f32'] },
  inputs: { x: tensor('T', '${x}')${more} }, outputs: { y: tensor('T', '${y}') }, body: ${body} })`
  const [kernel] = read(text).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  return kernel
}
const instance = (kernel: Kernel) => ({ kernel, types: { T: 'f32' as const }, dims: {} })
const split = (kernel: Kernel) => {
  const made = splitLaunch(instance(kernel), 1)
  if (made !== undefined) for (const each of [made.first, made.rest]) verifyKernel(each, 'splitting launches')
  return made
}
const launchNames = (kernel: Kernel): readonly string[] =>
  variantLines(mapKernel(instance(kernel), undefined, undefined, { ...schedulePasses, groupRows: () => undefined })).map(
    ({ name }) => name,
  )

const norm = (of: string) => `({ x }, { m, n }) => (i, j) => ({ y: x(i, j) / ${of} })`
const square = 'sum(m, (r) => sum(n, (c) => x(r, c) ** 2))'

describe('a reduction that points share', () => {
  it('is computed once for each point of its own axes', () => {
    const made = split(op(norm(square), 'm n', 'm n', 'm n'))
    expect(made?.first.rows).toEqual([])
    expect(made?.first.tensors.map(({ name, access, dims }) => [name, access, dims.length])).toEqual([
      ['x', 'in', 2],
      ['sum0_once', 'out', 0],
    ])
    expect(made && printKernel(made.rest)).toContain('y[i, j] = x[i, j] / sum0_once[]')
  })

  it('is followed by what is made of it, a launch for each link of a chain', () => {
    const body = `({ x }, { m, n }) => (i, j) => {
      const mean = ${square.replace(' ** 2', '')} / (m * n)
      const spread = ${square.replace('x(r, c)', '(x(r, c) - mean)')}
      return { y: (x(i, j) - mean) * rsqrt(spread + 1) } }`
    expect(launchNames(op(body, 'm n', 'm n', 'm n'))).toEqual(['subject_part1__f32', 'subject_part2__f32', 'subject__f32'])
  })

  it('brings the scalars and rows along that it reads', () => {
    const body = `({ x, g }, { k, s }) => (b, j) => {
      const factor = g(b) * 2
      const top = max(k, (i) => max(s, (c) => x(b, i, c) * factor))
      return { y: row(s, (c) => x(b, j, c) - top) } }`
    const made = split(op(body, 'b k s', 'b k s', 'b k s', ", g: tensor('f32', 'b')"))
    expect(made?.first.tensors.map(({ name }) => name)).toEqual(['x', 'g', 'top_once'])
    expect(made?.rest.tensors.map(({ name }) => name)).toEqual(['x', 'top_once', 'y'])
    expect(made?.rest.body.some((stmt) => 'name' in stmt && stmt.name === 'factor')).toBe(false)
  })
})

describe('scalars of other constructs that points share', () => {
  it.each([
    ['a ranking', 'const best = topK(3, n, (c) => x(i, c))', 'best.values(2) + toFloat(best.indices(0))', ['m', 'm']],
    ['a histogram', 'const h = histogram(16, n, (c) => toInt(x(i, c)))', 'toFloat(h(3))', ['m']],
    ['a recurrence', 'const f = fold(n, { h: 0 }, ({ h }, c) => ({ h: h * 0.5 + x(i, c) }))', 'f.h', ['m']],
    ['a ranking of a whole tensor', 'const best = topK(3, m * n, (c) => x(idiv(c, n), c % n))', 'best.values(2)', ['']],
  ])('%s', (_, statements, value, scratch) => {
    const made = split(
      op(`({ x }, { m, n }) => (i, j) => { ${statements}\n return { y: x(i, j) - ${value} } }`, 'm n', 'm n', 'm n'),
    )
    expect(made?.first.tensors.filter(({ access }) => access === 'out').map(({ dims }) => dims.join(' '))).toEqual(scratch)
    expect(made?.rest.body.map(({ kind }) => kind)).toEqual(['store'])
  })
  it.each([
    ['an element at another place', 'const h = histogram(16, n, (c) => toInt(x(i, c)))', 'toFloat(h(toInt(x(i, j))))'],
    ['an element of each point', 'const best = topK(3, n, (c) => x(i, c) * x(i, j))', 'best.values(2)'],
  ])('but not %s', (_, statements, value) => {
    const kernel = op(`({ x }, { m, n }) => (i, j) => { ${statements}\n return { y: x(i, j) - ${value} } }`, 'm n', 'm n', 'm n')
    expect(split(kernel)).toBeUndefined()
  })
})

describe('a reduction over several axes that another follows', () => {
  it('is divided among blocks', () => {
    const body = `({ x }, { b, s }) => (c) => {
      const mean = sum(b, (i) => sum(s, (t) => x(i, c, t))) / (b * s)
      return { y: sum(b, (i) => sum(s, (t) => (x(i, c, t) - mean) ** 2)) } }`
    const kernel = op(body, 'b c s', 'b c s', 'c')
    expect(split(kernel)?.first.rows.map(({ dim }) => dim)).toEqual(['c'])
    expect(describeSchedule(mapKernel(instance(kernel))).match(/program of totals/g)).toHaveLength(2)
  })
})

describe('no launch in front', () => {
  it.each([
    [
      'one of a row that each point has for itself',
      '({ x }, { n }) => (i) => ({ y: row(n, (c) => x(i, c) / sum(n, (k) => x(i, k))) })',
      'm n',
      'm n',
    ],
    ['one total of everything', '({ x }, { m, n }) => () => ({ y: sum(m, (r) => sum(n, (c) => x(r, c))) })', 'm n', ''],
    [
      'a reduction no longer than the row of each point',
      '({ x }, { n, m }) => (i, j) => { const v = row(n, (c) => x(i, c)); const t = sum(n, (c) => v(c)); return { y: row(n, (c) => v(c) * t + j) } }',
      'm n',
      'm n n',
    ],
    [
      'few elements, whose number is fixed',
      '({ x }, { m, n }) => (i, j) => ({ y: x(i, j) * sum(8, (k) => x(i, 0) * k) })',
      'm n',
      'm n',
    ],
  ])('%s', (_, body, x, y) => {
    expect(split(op(body, 'm n', x, y))).toBeUndefined()
  })

  it('a list beside the tensors', () => {
    const body = '({ x, stops }, { e }) => (i, j) => ({ y: x(i, j) * sum(e, (k) => (stops(k) === j ? 1 : 0)) })'
    expect(split(op(body, 'm n e', 'm n', 'm n', ", stops: tensor('i32', 'e')"))).toBeUndefined()
  })

  it('in front of a kernel that replaces its input', () => {
    const kernel = op(norm(square), 'm n', 'm n', 'm n')
    const inPlace = { ...kernel, tensors: kernel.tensors.map((t) => (t.name === 'y' ? { ...t, updates: 'x' } : t)) }
    expect(split(inPlace)).toBeUndefined()
  })
})

it('a faulty pass is found by the verifier of its kernels', () => {
  const faulty: typeof schedulePasses = {
    ...schedulePasses,
    splitLaunch: (given, part) => {
      const made = splitLaunch(given, part)
      return made && { ...made, rest: { ...made.rest, tensors: made.rest.tensors.filter(({ name }) => name !== 'sum0_once') } }
    },
  }
  const kernel = op(norm(square), 'm n', 'm n', 'm n')
  expect(() => mapKernel(instance(kernel), undefined, undefined, faulty)).toThrow('after splitting launches')
})

it('launches that read what none leaves are refused', () => {
  const mapped = mapKernel(instance(op(norm(square), 'm n', 'm n', 'm n')))
  const { split: launches } = mapped
  if (launches === undefined) throw new Error('one launch')
  expect(() => verifyMapped({ ...mapped, split: { ...launches, before: [] } }, 'mapping')).toThrow(
    'subject reads sum0_once, which no launch in front leaves',
  )
})
