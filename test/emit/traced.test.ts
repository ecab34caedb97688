/** Source lines of specs for each line of IR and CUDA source: through all passes, in one op, across ops, and in every shape of program. */
import { describe, expect, it } from 'vitest'
import { emitInstance } from '../../src/emit/generate.js'
import { tracedText } from '../../src/emit/traced.js'
import { allInstances } from '../../src/ir/instance.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { type TracedText, traced } from '../../src/ir/trace.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'

const source = `import { op, row, rsqrt, sum, tensor } from 'heddle'
import { centred } from './shared.js'
export const norm = op('traced_norm', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), w: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'm n') },
  attrs: { eps: 0 },
  body: ({ x, w }, { n, eps }) => (m) => {
    const mean = sum(n, (c) => x(m, c)) / n
    const squares = sum(n, (c) =>
      centred(x(m, c), mean) ** 2)
    const scale = rsqrt(squares / n + eps)
    return {
      y: row(n, (c) => {
        const at = centred(x(m, c), mean)
        return at * scale *
          w(c)
      }),
    }
  },
})`
const shared = `/** How far a value is from a mean. */
export const centred = (value: number, mean: number): number =>
  value - mean`

const column = `import { op, sum, tensor } from 'heddle'
export const columns = op('traced_columns', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'n') },
  body: ({ x }, { m }) => (c) => ({
    y: sum(m, (r) =>
      x(r, c) * 2),
  }),
})
export const total = op('traced_total', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', '') },
  body: ({ x }, { m, n }) => () => ({
    y: sum(m, (r) => sum(n, (c) =>
      x(r, c) + 1)),
  }),
})`

const { kernels, diagnostics } = read({ 'norm.ts': source, 'shared.ts': shared, 'column.ts': column })
const kernelOf = (name: string): Kernel => {
  const found = kernels.find((kernel) => kernel.name === name)
  if (found === undefined) throw new Error(`there is no ${name}`)
  return found
}
const none = { tuning: undefined, schedules: {} }

/** Lines of a source with the spec lines from which they come, `norm.ts:9`. */
const made = ({ text, places }: TracedText, said: string): readonly string[][] =>
  text
    .split('\n')
    .flatMap((line, at) => (line.includes(said) ? [(places[at] ?? []).map((place) => place.replace(/.*\//, ''))] : []))

describe('a line of the IR', () => {
  const ir = traced(() => printKernel(kernelOf('traced_norm')))
  it('has the lines of its own expressions, in any file', () => {
    expect(diagnostics).toEqual([])
    expect(made(ir, 'let mean:')).toEqual([['norm.ts:9']])
    expect(made(ir, 'let scale')).toEqual([['norm.ts:12']])
    expect(made(ir, 'sum(c1 <').concat(made(ir, 'sum(c2 <')).flat()).toContain('shared.ts:3')
    expect(made(ir, 'y[m1').flat().sort()).toEqual(['norm.ts:15', 'norm.ts:16', 'norm.ts:17', 'shared.ts:3'])
  })
  it('has no line if it comes from no expression', () => {
    expect(made(ir, 'kernel traced_norm')).toEqual([[]])
    expect(made(ir, 'in  x:')).toEqual([[]])
  })
})

describe('a line of CUDA', () => {
  const cuda = tracedText(kernelOf('traced_norm'), 'traced_norm', none)
  if (cuda === undefined) throw new Error('it has no text')
  it('has its source lines, and equals the generated source', () => {
    const [instance] = allInstances(kernelOf('traced_norm'))
    expect(instance && emitInstance(mapKernel(instance))).toBe(cuda.text)
    expect(made(cuda, 'const float scale =')).toContainEqual(['norm.ts:12'])
    for (const each of made(cuda, 'team.reduce(sum0_lanes)')) expect(each).toEqual(['norm.ts:9'])
    for (const each of made(cuda, 'heddle::store_chunk')) expect(each).toContain('norm.ts:16')
    expect(made(cuda, 'heddle::begin_kernel').flat()).toEqual([])
  })
  it('has them after every pass and in every shape of program', () => {
    for (const [name, line] of [
      ['traced_columns', 'column.ts:8'],
      ['traced_total', 'column.ts:17'],
    ] as const) {
      const text = tracedText(kernelOf(name), name, none)
      expect(
        text?.places.flat().some((place) => place.endsWith(line)),
        name,
      ).toBe(true)
      const [instance] = allInstances(kernelOf(name))
      if (instance === undefined) throw new Error('it has no instance')
      const mapped = mapKernel(instance)
      expect(mapped.program.kind).toBe(name === 'traced_total' ? 'totals' : 'columns')
      const said = traced(() => describeSchedule(mapped))
      expect(
        said.places.flat().some((place) => place.endsWith(line)),
        name,
      ).toBe(true)
    }
  })
})

describe('an untraced source', () => {
  it('contains no marks, also after tracing failed', () => {
    const refused = new Error('refused')
    expect(() =>
      traced(() => {
        throw refused
      }),
    ).toThrow(refused)
    expect(printKernel(kernelOf('traced_norm'))).not.toMatch(/[\uE000\uE001]/)
    expect(traced(() => printKernel(kernelOf('traced_norm'))).text).toBe(printKernel(kernelOf('traced_norm')))
  })
})
