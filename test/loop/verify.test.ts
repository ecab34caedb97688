/** Faults planted into each pass of the loop IR: found by the verifier, or by running the loops beside the body. */
import { describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { type Loop, mapLoops } from '../../src/loop/ir.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import * as fixtures from '../schedule/fixtures.js'
import { ranked } from '../schedule/ranked.js'
import { differences, type Passes } from './run_loops.js'

const run = (kernel: Kernel, passes: Partial<Passes>, n = 13) =>
  differences(
    { kernel, types: Object.hasOwn(kernel.types, 'T') ? { T: 'f32' } : {}, dims: kernel === ranked ? { k: 4 } : {} },
    Object.fromEntries(kernel.dims.map((name) => [name, { m: 2, k: 4 }[name] ?? n])),
    { lanes: 4, vec: 2 },
    passes,
  )

/** Changes the result of lowering, node by node. */
const lowered = (f: (loop: Loop) => readonly Loop[]): Partial<Passes> => ({
  lower: (...given) => mapLoops(loopPasses.lower(...given), f),
})
const without = (is: (loop: Loop) => boolean) => lowered((loop) => (is(loop) ? [] : [loop]))

const changed = (kind: Loop['kind'], change: (loop: Loop) => Loop): Partial<Passes> =>
  lowered((loop) => [loop.kind === kind ? change(loop) : loop])
const open = (loop: Loop): readonly Loop[] => (loop.kind === 'exists' ? loop.body : [loop])

describe('the verifier finds', () => {
  it.each<[string, Kernel, Partial<Passes>, string]>([
    ['a missing barrier', ranked, without(({ kind }) => kind === 'barrier'), 'an element of total is read before it is computed'],
    [
      'a reduction split twice',
      fixtures.softmax,
      lowered((loop) => (loop.kind === 'combine' && loop.across === 'vector' ? [loop, loop] : [loop])),
      'combined 1 times across lanes and 2 times across elements',
    ],
    [
      'a reduction that is not combined',
      fixtures.rowSum,
      without((loop) => loop.kind === 'combine' && loop.across === 'vector'),
      'combined 1 times across lanes and 0 times across elements',
    ],
    ['a tail left out', fixtures.softmax, lowered(open), 'an element that may not exist is collected'],
    [
      'a wrong owner',
      fixtures.rowSum,
      changed('store', (loop) => ({ ...loop, by: 'owner' }) as Loop),
      'an element of y is stored by the wrong lanes',
    ],
    [
      'a hoist over a changed value',
      fixtures.layerNorm,
      { version: (loops) => loops.toSorted((a, b) => Number(b.kind === 'let') - Number(a.kind === 'let')) },
      'is read before it is computed',
    ],
    [
      'a missing check',
      fixtures.softmax,
      changed('storeChunk', (loop) => ({ ...loop, access: { ...('access' in loop ? loop.access : {}), whole: true } }) as Loop),
      'a chunk of y is accessed without a check',
    ],
    [
      'lanes that meet alone',
      fixtures.prefixSum,
      changed('for', (loop) => ({ ...loop, together: false }) as Loop),
      'lanes meet where not all of them pass',
    ],
    [
      'a name declared twice',
      fixtures.softmax,
      changed('accumulator', (loop) => ({ ...loop, name: 'lanes' }) as Loop),
      'lanes is declared twice',
    ],
  ])('%s', (_, kernel, passes, reason) => expect(() => run(kernel, passes)).toThrow(reason))

  it('a row taken for aligned that may not be', () => {
    const version: Passes['version'] = (...given) =>
      loopPasses.version(...given).map((loop) => (loop.kind === 'version' ? { ...loop, lengths: [] } : loop))
    expect(() => run(fixtures.softmax, { version })).toThrow('a row is taken for aligned that may not be')
  })
})

describe('running the loops finds', () => {
  it('a version for whole rows that is taken for all', () => {
    const version: Passes['version'] = (...given) =>
      loopPasses
        .version(...given)
        .map((loop) => (loop.kind === 'version' ? { ...loop, lengths: [], multiples: new Set() } : loop))
    expect(() => run(fixtures.softmax, { version })).toThrow('a chunk that is not full is accessed without a check')
    expect(run(fixtures.softmax, { version }, 8)).toEqual([])
  })

  it('a loop that ends early', () => {
    const early = changed('for', (loop) =>
      loop.kind === 'for' && loop.owner === 'lane' ? { ...loop, length: { kind: 'const', type: 'i32', value: 12 } } : loop,
    )
    expect(run(fixtures.rowSum, early, 14).map(({ walk, pass }) => [walk, pass])).toContainEqual(['kept', 'lowering to loops'])
    expect(run(fixtures.rowSum, early, 12)).toEqual([])
  })

  it('a prefetch of another row', () => {
    const placeLoads: Passes['placeLoads'] = (...given) => {
      const loops = loopPasses.placeLoads(...given)
      const names = new Set<string>()
      mapLoops(loops, (loop) => {
        if (loop.kind === 'prefetch') names.add(loop.name)
        return [loop]
      })
      const [first] = names
      return mapLoops(loops, (loop) => [
        loop.kind === 'copy' && loop.prefetched !== undefined && first !== undefined ? { ...loop, prefetched: first } : loop,
      ])
    }
    const one = { lanes: 16, vec: 2 }
    const dims = { m: 2, n: 16 }
    const instance = { kernel: fixtures.layerNorm, types: { T: 'f32' as const }, dims: {} }
    expect(differences(instance, dims, one)).toEqual([])
    expect(differences(instance, dims, one, { placeLoads }).map(({ walk, pass }) => [walk, pass])).toContainEqual([
      'kept',
      'placing loads',
    ])
  })
})
