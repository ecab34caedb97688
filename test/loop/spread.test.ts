/** Rows whose length is no multiple of the width: where elements of a chunk lie apart, and what lanes compute then. */
import { describe, expect, it } from 'vitest'
import { call, dim, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { noFacts } from '../../src/ir/facts/facts.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { eachLoop, type Loop, mapLoops } from '../../src/loop/ir.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { printLoops } from '../../src/loop/print.js'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'
import * as fixtures from '../schedule/fixtures.js'
import { ranked } from '../schedule/ranked.js'
import { differences, oneLaunch } from './run_loops.js'

const instanceOf = (kernel: Kernel, T: 'f16' | 'f32' = 'f32') => ({
  kernel,
  types: { T },
  dims: kernel === ranked ? { k: 4 } : {},
})
const stated: Kernel = { ...fixtures.layerNorm, facts: { ...noFacts, dims: { n: { multipleOf: 4 } } } }

const rows = [fixtures.axis('m', 'm')]
const [m, c] = [index('m'), index('c')]
const sumOf = (value: Expr): Kernel['body'] => [
  { kind: 'reduce', name: 'total', type: 'f32', monoid: 'sum', length: dim('n'), index: 'c', value },
  { kind: 'store', tensor: 'y', indices: [m], value: local('total') },
]
const y = fixtures.tensor('y', 'out', 'm', 'f32')
/** Rows that are the first part of others, so that each place of a row decides if it is aligned. */
const parts = fixtures.kernel('parts', 'm n p', rows, [fixtures.tensor('x', 'in', 'm p'), y], sumOf(fixtures.load('x', m, c)))
/** Elements of which eight share a factor, which is loaded once per chunk. */
const eights = fixtures.kernel(
  'eights',
  'm n',
  rows,
  [fixtures.tensor('x', 'in', 'm n'), fixtures.tensor('s', 'in', 'n'), y],
  sumOf(call('mul', fixtures.load('x', m, c), fixtures.load('s', call('idiv', c, i32(8))))),
)

/** Rows along which a value is carried from element to element. */
const [carried = parts] = read(`import { foldRow, op, row, tensor } from 'heddle'
export const carried = op('carried', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ x }, { n }) => (m) => {
    const h = foldRow(n, { h: 0 }, ({ h }, t) => ({ h: x(m, t) * h + 1 }))
    return { y: row(n, (c) => h.h(c)) }
  },
})
`).kernels

/** Versions of a kernel after the pass, and the loops as text. */
function spread(kernel: Kernel, T?: 'f16'): { readonly apart: readonly boolean[]; readonly text: string } {
  const apart: boolean[] = []
  const texts: string[] = []
  eachPass(mapKernel(instanceOf(kernel, T), undefined, undefined, oneLaunch), (_, pass, loops) => {
    if (pass !== 'spreading chunks') return
    texts.push(printLoops(loops))
    eachLoop(loops, (loop) => {
      if (loop.kind === 'version') apart.push(loop.apart === true)
    })
  })
  return { apart, text: texts.join('\n') }
}

describe('elements of a chunk', () => {
  it.each([fixtures.softmax, fixtures.layerNorm, fixtures.rowSum, fixtures.argmaxRow, fixtures.prefixSum, fixtures.scanOfScan])(
    'of $name lie apart',
    (kernel) => {
      const { apart, text } = spread(kernel)
      expect(apart.length).toBeGreaterThan(0)
      expect(apart).not.toContain(false)
      expect(text).toContain('elements of a chunk apart in others')
    },
  )

  it.each([
    ['softmax in f16', fixtures.softmax, 'f16', true],
    ['softmax in f32', fixtures.softmax, undefined, false],
    ['a scan in f16', fixtures.prefixSum, 'f16', false],
  ] as const)('of %s: stay in pairs', (_, kernel, type, isPaired) =>
    expect(spread(kernel, type).text.includes('in pairs of an even length')).toBe(isPaired),
  )

  it.each([
    ['a recurrence', carried],
    ['a ranking', ranked],
    ['rows of two lengths', fixtures.twoLengths],
    ['rows whose length is a multiple by facts', stated],
    ['rows that are parts of others', parts],
    ['chunks that share a value', eights],
  ])('of %s are consecutive', (_, kernel) => expect(spread(kernel).apart).not.toContain(true))
})

describe('lanes compute what the body does', () => {
  for (const kernel of [fixtures.softmax, fixtures.layerNorm, fixtures.argmaxRow, fixtures.prefixSum, fixtures.scanOfScan])
    it.each([1, 3, 5, 31, 33, 63, 64, 65, 127])(`${kernel.name} of %i elements`, (n) => {
      for (const [lanes, vec] of [
        [4, 2],
        [1, 4],
        [64, 2],
      ] as const)
        expect(differences(instanceOf(kernel), { m: 3, n }, { lanes, vec })).toEqual([])
    })
})

describe('lanes compute what the body does in pairs', () => {
  for (const kernel of [fixtures.softmax, fixtures.layerNorm, fixtures.argmaxRow])
    it.each([2, 6, 34, 62, 66, 126, 130, 258, 3, 33])(`${kernel.name} of %i elements`, (n) => {
      for (const [lanes, vec] of [
        [4, 4],
        [1, 4],
        [64, 4],
      ] as const)
        expect(differences(instanceOf(kernel, 'f16'), { m: 3, n }, { lanes, vec })).toEqual([])
    })
})

describe('the verifier finds', () => {
  const everywhere = (loops: readonly Loop[]): readonly Loop[] =>
    mapLoops(loops, (loop) => [loop.kind === 'version' ? { ...loop, apart: true } : loop])
  const run = (kernel: Kernel, passes: Partial<typeof loopPasses>) => () =>
    differences(instanceOf(kernel), { m: 2, n: 13, k: 4, p: 16 }, { lanes: 4, vec: 2 }, passes)
  const reason = 'elements of a chunk lie apart whose places have a meaning'

  it.each([
    ['rows of two lengths', fixtures.twoLengths],
    ['rows that are parts of others', parts],
    ['chunks that share a value', eights],
  ])('%s', (_, kernel) => expect(run(kernel, { spread: everywhere })).toThrow(reason))
  it('pairs of a scan', () => {
    const paired = (...given: Parameters<typeof loopPasses.spread>): readonly Loop[] =>
      mapLoops(loopPasses.spread(...given), (loop) => [loop.kind === 'version' ? { ...loop, pairs: true } : loop])
    expect(run(fixtures.prefixSum, { spread: paired })).toThrow('elements stay in pairs that are combined one by one')
  })
  it('a length that the width divides by facts', () => expect(run(stated, { spread: everywhere })).toThrow(reason))
  it('a check that a later pass takes away', () => {
    const placeLoads: typeof loopPasses.placeLoads = (...given) =>
      mapLoops(loopPasses.placeLoads(...given), (loop) => [
        loop.kind === 'storeChunk' ? { ...loop, access: { ...loop.access, whole: false } } : loop,
      ])
    expect(run(fixtures.softmax, { placeLoads })).toThrow(reason)
  })
})
