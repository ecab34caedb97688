/** Quotients and remainders that are counted along a chunk, and the faults of such loops that verification finds. */
import { describe, expect, it } from 'vitest'
import { call, index } from '../../src/ir/build.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { evaluatePasses } from '../../src/loop/evaluate_mapped.js'
import { type Loop, mapLoops } from '../../src/loop/ir.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { printLoops } from '../../src/loop/print.js'
import { mapKernel } from '../../src/schedule/map.js'
import { axis, kernel, load, tensor } from '../schedule/fixtures.js'

const [i, g, j] = [index('i'), index('g'), index('j')]
const subject: Kernel = kernel(
  'planes',
  'a g k',
  [axis('i', 'a'), axis('g', 'g'), axis('j', 'k')],
  [tensor('p', 'in', 'a g k'), tensor('s', 'in', 'g'), tensor('c', 'in', 'a k'), tensor('z', 'out', 'a g k')],
  [
    {
      kind: 'store',
      tensor: 'z',
      indices: [i, g, j],
      value: call('add', call('mul', load('p', i, g, j), load('s', g)), load('c', i, j)),
    },
  ],
)
const mapped = mapKernel({ kernel: subject, types: { T: 'f16' }, dims: {} }).split?.inRow?.mapped ?? expect.fail('one row')
const dims = { a: 3, g: 2, k: 7 }
const data = (length: number) => Float64Array.from({ length }, (_, at) => (at * 37 + 11) % 41)
const tensors = {
  p: { data: data(42), shape: [3, 2, 7] },
  s: { data: data(2), shape: [2] },
  c: { data: data(21), shape: [3, 7] },
}
const results = (passes: Partial<typeof loopPasses> = {}) =>
  evaluatePasses(mapped, { tensors, dims }, { lanes: 4, vec: 4 }, { ...loopPasses, ...passes }, 'each').map(
    ({ pass, outputs }) => [pass, Array.from(outputs.z?.data ?? [], Number)],
  )
const wanted = Array.from(evaluateKernel(subject, tensors, dims).z?.data ?? [], Number)
/** Passes of which the first is followed by a fault. */
const counting = (of: (loop: Loop) => Loop) => ({
  countPlaces: (...given: Parameters<typeof loopPasses.countPlaces>) =>
    mapLoops(loopPasses.countPlaces(...given), (loop) => [of(loop)]),
})

describe('places', () => {
  it('are counted by the extents of inner axes', () => {
    const texts = new Map<string, string>()
    eachPass(mapped, (_, pass, loops) => void texts.set(pass, printLoops(loops)))
    expect(texts.get('counting places')).toContain(
      'count t by k, then by g: quotient 0.0, quotient 0.1, remainder 0.0, remainder 0.1',
    )
    expect(texts.get('counting places')).not.toMatch(/[%/] [kg]/)
    expect(texts.get('versioning')).toContain('two versions: full chunks if p, z aligned, others')
  })

  it('are those of the body after each pass', () => {
    for (const [pass, values] of results()) expect(values, `${pass}`).toEqual(wanted)
  })

  it.each<[string, (loop: Loop) => Loop]>([
    ['in another order', (loop) => (loop.kind === 'count' ? { ...loop, divisors: loop.divisors.toReversed() } : loop)],
    [
      'as quotients',
      (loop) => (loop.kind === 'count' ? { ...loop, remainders: loop.quotients, quotients: loop.remainders } : loop),
    ],
  ])('counted %s are found by their values', (_, fault) =>
    expect(() => {
      for (const [, values] of results(counting(fault))) expect(values).toEqual(wanted)
    }).toThrow(),
  )
})

describe('the verifier finds', () => {
  it('places that are not counted for each element', () => {
    const moved = counting((loop) =>
      loop.kind === 'for' && loop.owner === 'vector'
        ? { ...loop, body: [{ kind: 'exists', whole: false, body: loop.body }] }
        : loop,
    )
    expect(() => results(moved)).toThrow('t is not counted for each element')
  })
  it('names that are not counted', () => {
    const without = counting((loop) =>
      loop.kind === 'for' && loop.owner === 'vector' ? { ...loop, body: loop.body.filter(({ kind }) => kind !== 'count') } : loop,
    )
    expect(() => results(without)).toThrow('is read before it is computed')
  })
  it('a full chunk of a row that may begin anywhere', () => {
    const version: typeof loopPasses.version = (...given) =>
      mapLoops(loopPasses.version(...given), (loop) => [
        loop.kind === 'version' ? { ...loop, aligned: loop.aligned.map((each) => ({ ...each, start: 'start 0' })) } : loop,
      ])
    expect(() => results({ version })).toThrow('a full chunk is taken for aligned that may not be')
  })
})
