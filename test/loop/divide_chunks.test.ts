/** Scales of parts of a row are loaded once per chunk, in rows whose parts are divided by no chunk. */
import { expect, it } from 'vitest'
import { call, dim, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { type Loop, mapLoops } from '../../src/loop/ir.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { printLoops } from '../../src/loop/print.js'
import { mapKernel } from '../../src/schedule/map.js'
import { scheduledLaunch } from '../../src/schedule/mapped.js'
import { axis, kernel, tensor } from '../schedule/fixtures.js'
import { differences, type Passes } from './run_loops.js'

const load = (name: string, ...indices: readonly Expr[]): Expr => ({ kind: 'load', type: 'f32', tensor: name, indices })
const place = call('idiv', index('d'), dim('k'))
const x = (at: string) => load('x', index('i'), index(at))

/** Rows of `n` elements in parts of `k`, each with a scale and a shift. */
const parts = kernel(
  'parts',
  'm n k',
  [axis('i', 'm')],
  [tensor('x', 'in', 'm n'), tensor('gamma', 'in', 'n'), tensor('beta', 'in', 'm n'), tensor('y', 'out', 'm n')],
  [
    { kind: 'reduce', name: 'top', type: 'f32', monoid: 'max', index: 'c', length: dim('n'), value: x('c') },
    {
      kind: 'storeRow',
      tensor: 'y',
      rows: [index('i')],
      index: 'd',
      length: dim('n'),
      value: call(
        'add',
        call('mul', call('sub', x('d'), { kind: 'local', type: 'f32', name: 'top' }), load('gamma', place)),
        load('beta', index('i'), place),
      ),
    },
  ],
)
const instance = { kernel: parts, types: { T: 'f32' as const }, dims: {} }
const run = (k: number, n: number, vec: number, passes: Partial<Passes> = {}) =>
  differences(instance, { m: 2, n, k }, { lanes: 4, vec }, passes)

it('loads once per chunk, where parts are whole chunks', () => {
  const texts: string[] = []
  eachPass(scheduledLaunch(mapKernel(instance)), (_, pass, loops) => pass === 'dividing chunks' && texts.push(printLoops(loops)))
  for (const text of texts) {
    expect(text).toMatch(/let part c \d: f32 = .*gamma\[part c \d\].* \(once per chunk\)/)
    expect(text).toContain('k % VEC == 0')
    expect(text).toMatch(/whole rows \? part c \d : gamma\[/)
  }
  expect(texts).toHaveLength(2)
})

it.each([
  [4, 8, 2],
  [3, 8, 2],
  [3, 12, 2],
  [8, 16, 8],
  [4, 16, 8],
  [1, 7, 2],
])('parts of %i in rows of %i, chunks of %i', (k, n, vec) => {
  expect(run(k, n, vec)).toEqual([])
})

it('a test of parts left out is found by running the loops', () => {
  const divideChunks: Passes['divideChunks'] = (loops, frame) =>
    loopPasses
      .divideChunks(loops, frame)
      .map(
        (loop): Loop =>
          loop.kind === 'version' ? { ...loop, lengths: loop.lengths.filter((e) => e?.kind !== 'dim' || e.name !== 'k') } : loop,
      )
  expect(run(3, 12, 2, { divideChunks }).map(({ pass }) => pass)).toContain('dividing chunks')
  expect(run(4, 8, 2, { divideChunks })).toEqual([])
})

it('a value of a chunk outside of the version for whole rows is found by the verifier', () => {
  const checked = (loop: Loop): Loop => {
    if (loop.kind === 'exists') return { ...loop, whole: false }
    return loop.kind === 'copy' || loop.kind === 'storeChunk' ? { ...loop, access: { ...loop.access, whole: false } } : loop
  }
  const divideChunks: Passes['divideChunks'] = (loops, frame) =>
    mapLoops(loopPasses.divideChunks(loops, frame), (loop) => (loop.kind === 'version' ? loop.body : [checked(loop)]))
  expect(() => run(4, 8, 2, { divideChunks })).toThrow('whole rows is read before it is computed')
})
