import { describe, expect, it } from 'vitest'
import { layouts } from '../../specs/index.js'
import { twoLargest } from '../../src/bench/memory.js'
import { chain, chained, chainedWeights, rotationOf } from '../../src/bench/rotation.js'
import { syntheticWeights } from '../../src/bench/synthetic.js'
import { assembleBert, bertDims, bertInputs } from '../../src/models/encoder/bert.js'
import { findPlan } from '../../src/program/plans.js'
import { encode } from '../../src/runtime/buffer.js'
import { buildProgram, type ProgramConfig } from '../../src/runtime/program.js'
import { openSession } from '../../src/runtime/session.js'
import { referenceDevice, referenceLibrary, referenceManifest } from '../runtime/reference_device.js'
import { tinyConfig } from './results.js'

describe('rotationOf', () => {
  it('replays one pass when it streams twice the cache', () => {
    expect(rotationOf(120, 60)).toEqual({ passes: 1, bytes: 120, evicts: true })
    expect(rotationOf(119, 60)).toEqual({ passes: 2, bytes: 238, evicts: true })
  })

  it('reports when even the longest chain is too small, and when the cache is unknown', () => {
    const tiny = rotationOf(1, 2 ** 20)
    expect(tiny.evicts).toBe(false)
    expect(tiny.bytes).toBe(tiny.passes)
    expect(rotationOf(1, undefined)).toEqual({ passes: 1, bytes: 1, evicts: undefined })
  })
})

describe('chain', () => {
  const shape = { batch: 2, seq: 3 }
  const inputs = (first: number): Record<string, Uint8Array> => ({
    ids: encode(
      'i32',
      Int32Array.from({ length: 6 }, (_, i) => first + 3 * i),
    ),
    typeIds: encode('i32', new Int32Array(6)),
    lengths: encode('i32', Int32Array.of(3, 2)),
  })

  it("gives the model's results for the ids and weights of each pass", async () => {
    const manifest = referenceManifest()
    const { device } = referenceDevice(manifest)
    const common = { device, library: referenceLibrary(manifest), manifest, layouts }
    const weights = syntheticWeights(tinyConfig, 'f32')
    const assembly = assembleBert(tinyConfig, findPlan('unfused'), false)
    const at = { dims: bertDims(tinyConfig, shape), types: { T: 'f32' } } as const
    const run = async (config: ProgramConfig, values: Record<string, Uint8Array>) => (await buildProgram(config)).run(values)

    const session = await openSession({ ...common, weights })
    const single = { session, ...assembly, inputs: bertInputs, ...at }
    const copies = await openSession({ ...common, weights: chainedWeights(2, weights) })
    const both = await run(
      { session: copies, ...chain(assembly, bertInputs, 2), ...at },
      chained(2, (pass) => inputs(pass)),
    )
    expect(copies.weightBytes).toBe(2 * session.weightBytes)
    expect(Object.keys(both)).toEqual(['pass0/states', 'pass1/states'])
    expect(both['pass0/states']).toEqual((await run(single, inputs(0))).states)
    expect(both['pass1/states']).toEqual((await run(single, inputs(1))).states)
    expect(both['pass1/states']).not.toEqual(both['pass0/states'])
  })
})

describe('twoLargest', () => {
  const storage = (bytes: number, first: number, last: number, weight?: string) => ({
    bytes,
    first,
    last,
    weight,
    state: undefined,
  })

  it('adds the two largest of one step, not of the program', () => {
    expect(twoLargest([storage(100, 0, 1), storage(90, 2, 3), storage(5, 1, 2), storage(7, 3, 3)])).toBe(105)
  })

  it('counts both ends of a lifetime, single buffers, and no weights', () => {
    expect(twoLargest([storage(10, 0, 2), storage(20, 2, 4), storage(30, 4, 4)])).toBe(50)
    expect(twoLargest([storage(10, 0, 9), storage(1000, 0, 9, 'w')])).toBe(10)
    expect(twoLargest([])).toBe(0)
  })
})
