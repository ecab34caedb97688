import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { assemble, type EncoderBench } from '../../src/bench/candidates.js'
import { benchEncoder } from '../../src/bench/encoder.js'
import { lengthsOf } from '../../src/bench/lengths.js'
import { summarise } from '../../src/bench/statistics.js'
import { benchConfig, sizedConfig, syntheticWeights } from '../../src/bench/synthetic.js'
import { givenShapes, shapesOf } from '../../src/cli/bench_options.js'
import { bertShapes, bertWeights } from '../../src/models/encoder/bert.js'
import { decode } from '../../src/runtime/buffer.js'
import { matmulName } from '../../src/runtime/tuned_matmuls.js'
import { refusal } from '../refusal.js'
import { referenceDevice, referenceLibrary, referenceManifest } from '../runtime/reference_device.js'
import { fakeDevice, fakeInfo, plainMatmul } from './library/fake.js'
import { tinyConfig as config } from './results.js'

describe('summarise', () => {
  it('returns median and quartiles, interpolated, of samples in any order', () => {
    expect(summarise([5, 1, 4, 2, 3])).toEqual({ median: 3, low: 2, high: 4, best: 1, samples: 5 })
    expect(summarise([1, 2])).toMatchObject({ median: 1.5, low: 1.25 })
  })

  it('sorts numbers as numbers and is NaN without samples', () => {
    expect(summarise([10, 9, 100]).median).toBe(10)
    expect(summarise([])).toMatchObject({ median: Number.NaN, samples: 0 })
  })
})

describe('lengthsOf', () => {
  it('knows full and half', () => {
    expect(lengthsOf('full')(3, 7)).toEqual([7, 7, 7])
    const half = lengthsOf('half')(2000, 100)
    expect(half.every((length) => Number.isInteger(length) && length >= 1 && length <= 100)).toBe(true)
    // The mean of 2000 uniform draws is within five standard deviations, 0.65 each, of 50.5.
    expect(Math.abs(half.reduce((sum, length) => sum + length, 0) / half.length - 50.5)).toBeLessThan(3.3)
    expect(lengthsOf('half')(2000, 100)).toEqual(half)
  })

  it('repeats and cuts a file, and refuses others', () => {
    const folder = mkdtempSync(join(tmpdir(), 'heddle-lengths-'))
    const file = join(folder, 'lengths')
    writeFileSync(file, '3\n90 5\n')
    expect(lengthsOf(file)(4, 10)).toEqual([3, 10, 5, 3])
    writeFileSync(file, '3 0')
    expect(() => lengthsOf(file)).toThrow('contains 0, expected positive integers')
    writeFileSync(file, '')
    expect(() => lengthsOf(file)).toThrow('contains no lengths')
    expect(() => lengthsOf(join(folder, 'none'))).toThrow('cannot read lengths')
    rmSync(folder, { recursive: true })
  })
})

describe('shapesOf', () => {
  it('reads batch x seq and refuses the rest', () => {
    expect(shapesOf('1x128,32x5')).toEqual([
      { batch: 1, seq: 128 },
      { batch: 32, seq: 5 },
    ])
    for (const text of ['3', '0x4', '1x', '1x2,', 'axb']) expect(() => shapesOf(text), text).toThrow('is not a shape')
  })
})

describe('givenShapes', () => {
  it('is the list, every batch with every length, or one usual shape', () => {
    const shapes = [{ batch: 2, seq: 3 }]
    expect(givenShapes({ shapes })).toEqual(shapes)
    expect(givenShapes({ batch: [1, 8], length: [32] })).toEqual([
      { batch: 1, seq: 32 },
      { batch: 8, seq: 32 },
    ])
    expect(givenShapes({ length: [5] })).toEqual([{ batch: 1, seq: 5 }])
    expect(givenShapes({})).toEqual([{ batch: 1, seq: 128 }])
    expect(refusal(() => givenShapes({ shapes, batch: [1] }))).toMatchObject({ code: 'bench.shape' })
  })
})

describe('synthetic models', () => {
  it('have the given heads, and their total width', async () => {
    const found = await sizedConfig('bert-base', '.', { heads: 3, size: 10 })
    expect([found.heads, found.headDim, found.hidden, found.inner]).toEqual([3, 10, 30, 120])
    expect((await sizedConfig('bert-base', '.', { heads: 4 })).hidden).toBe(256)
    expect(await sizedConfig('bert-large', '.', {})).toEqual(await benchConfig('bert-large', '.'))
    await expect(sizedConfig('test/data', '.', { size: 10 })).rejects.toMatchObject({ code: 'bench.config' })
  })

  it('are timed under a plan with the first algorithms and with the given ones', () => {
    const device = fakeDevice([])
    const bench = { device, config, dtype: 'f16', manifest: referenceManifest(), plans: ['unfused'], masked: undefined } as const
    expect(assemble(bench).map(({ plan, algorithmOf }) => [plan, algorithmOf])).toEqual([['unfused', undefined]])
    const matmul = plainMatmul([1, 2, 3, 4])
    const kept = { device: fakeInfo.name, library: fakeInfo.matmulVersion, matmul: matmulName(matmul), config: '' }
    const algorithms = [{ ...kept, algorithm: '01'.repeat(64), measured: { first: 2, algorithm: 1 } }]
    const models = assemble({ ...bench, algorithms })
    expect(models.map(({ plan, algorithmOf }) => [plan, algorithmOf?.(matmul)?.length])).toEqual([
      ['unfused', undefined],
      ['unfused tuned', 64],
    ])
  })

  it('know their names', async () => {
    expect(await benchConfig('bert-base', '/')).toMatchObject({ hidden: 768, layers: 12, heads: 12, inner: 3072 })
    expect(await benchConfig('bert-large', '/')).toMatchObject({ hidden: 1024, layers: 24, headDim: 64 })
    await expect(benchConfig('bert-none', '/')).rejects.toThrow('neither a known configuration nor a folder')
  })

  it('have every tensor, filled to its end', () => {
    const weights = syntheticWeights(config, 'f16')
    expect(Object.keys(weights)).toEqual(Object.keys(bertShapes(config)))
    for (const [name, { data, shape }] of Object.entries(weights)) {
      const values = decode('f16', data)
      expect(values.length, name).toBe(shape.reduce((product, extent) => product * extent, 1))
      expect(Array.from(values).filter((value) => value === 0).length, name).toBeLessThan(values.length / 4)
    }
    const stored = new Map(
      Object.entries(syntheticWeights(config, 'f32')).map(([name, tensor]) => [name, { ...tensor, dtype: 'F32' as const }]),
    )
    expect(() => bertWeights(config, { tensors: stored }, 'f32')).not.toThrow()
  })
})

const none = { peakBytes: 0, weightBytes: 0, arenaBytes: 0, lowerBound: 0, twoLargestBytes: 0, ratio: 0 }

describe('benchEncoder', () => {
  const manifest = referenceManifest()
  const { device } = referenceDevice(manifest)
  const bench: EncoderBench = {
    device: {
      ...device,
      program(steps) {
        const program = device.program(steps)
        return {
          ...program,
          time: async (repeats) => new Float64Array(repeats).fill(2),
          profile: async () => new Float64Array(steps.length).fill(0.5),
        }
      },
    },
    library: referenceLibrary(manifest),
    manifest,
    config,
    dtype: 'f32',
    plans: ['unfused'],
    shapes: [{ batch: 2, seq: 4 }],
    lengths: lengthsOf('full'),
    ceilings: undefined,
    repeats: 7,
    profile: true,
  }

  it('takes exactly the requested samples and accounts for every step', async () => {
    const [result] = await benchEncoder(bench)
    expect(result).toMatchObject({ plan: 'unfused', batch: 2, seq: 4, meanLength: 4, milliseconds: { median: 2, samples: 7 } })
    const profile = result?.profile ?? []
    const steps = (result?.kernels ?? 0) + (result?.matmuls ?? 0)
    expect(profile.reduce((sum, step) => sum + step.count, 0)).toBe(steps)
    expect(profile.reduce((sum, step) => sum + step.milliseconds, 0)).toBeCloseTo(0.5 * steps, 9)
    // Eight matmuls a layer.
    expect(result?.matmuls).toBe(16)
  })

  it('has the same launches under a random mask', async () => {
    const [[lengths], [masked]] = [await benchEncoder(bench), await benchEncoder({ ...bench, masked: true })]
    expect([masked?.kernels, masked?.matmuls]).toEqual([lengths?.kernels, lengths?.matmuls])
    const kernels = (profile: readonly { readonly kernel: string }[] = []) => profile.map(({ kernel }) => kernel)
    expect(kernels(lengths?.profile)).not.toContain('mask_pairs__f32')
    expect(kernels(masked?.profile)).toContain('mask_pairs__f32')
  })

  it('has no floor for an unknown device, and compares the peak with its bound', async () => {
    const [result] = await benchEncoder(bench)
    expect(result).toMatchObject({ floor: undefined, fraction: undefined, rotation: { passes: 1 } })
    const { peakBytes, weightBytes, arenaBytes, lowerBound, twoLargestBytes, ratio } = result?.memory ?? none
    expect(peakBytes).toBe(weightBytes + arenaBytes)
    // The inner network's activation, 2 x 4 x 16 floats, and the hidden states that the residual keeps, 2 x 4 x 12.
    expect(twoLargestBytes).toBeGreaterThanOrEqual(4 * 8 * (16 + 12))
    expect(twoLargestBytes).toBeLessThanOrEqual(lowerBound)
    expect(ratio).toBe(peakBytes / (weightBytes + twoLargestBytes))
  })

  it('rotates the weights of a model that fits the cache, and reports times of one pass', async () => {
    const info = { ...bench.device.info(), kind: 'cuda' as const, cacheBytes: 60 * 2 ** 20 }
    const ceilings = { bandwidth: 4e12, peak: { f32: 60e12 } }
    const gpu = { ...bench, ceilings, repeats: 1, profile: false, device: { ...bench.device, info: () => info } }
    const [result] = await benchEncoder(gpu)
    const { passes, evicts } = result?.rotation ?? { passes: 0, evicts: undefined }
    expect(passes).toBeGreaterThan(1)
    expect(evicts).toBe(false)
    expect(result?.milliseconds.median).toBe(2 / passes)
    // Steps and memory are those of one pass.
    expect(result?.matmuls).toBe(16)
    expect(result?.fraction).toBe((result?.floor?.milliseconds ?? Number.NaN) / (2 / passes))
  })

  it('alternates the plans in both orders, with new ids in every round', async () => {
    const { device: plain } = referenceDevice(manifest)
    const [order, ids]: [string[], string[]] = [[], []]
    let programs = 0
    const device: typeof plain = {
      ...plain,
      program(steps) {
        const program = plain.program(steps)
        // Programs of fills only are the runtime's own.
        const name = steps.some(({ kind }) => kind === 'kernel') ? `program ${programs++}` : 'fill'
        return {
          ...program,
          run: (inputs, outputs) => {
            if (inputs.length > 0) ids.push(`${name}: ${inputs.map(({ data }) => data.join()).join(';')}`)
            return program.run(inputs, outputs)
          },
          time: async (repeats) => {
            order.push(name)
            return new Float64Array(repeats).fill(1)
          },
        }
      },
    }
    await benchEncoder({ ...bench, device, plans: ['unfused', 'unfused'], repeats: 5, profile: false })
    expect(order.slice(0, 6)).toEqual(['program 0', 'program 1', 'program 1', 'program 0', 'program 0', 'program 1'])
    expect(order).toHaveLength(10)
    expect(new Set(ids).size).toBe(10)
    expect(
      ids.map((text) => text.replace('program 0', 'program 1')).filter((text, i, all) => all.indexOf(text) === i),
    ).toHaveLength(5)
  })

  it('reports its progress', async () => {
    const stages: string[] = []
    await benchEncoder({ ...bench, repeats: 1 }, { onStage: (stage) => stages.push(stage) })
    expect(stages).toEqual(['building unfused 2x4 (1 of 1)', 'timing 2x4, round 1 of 1', 'profiling unfused 2x4'])
  })

  it('refuses a sequence beyond the positions and an unknown plan', async () => {
    await expect(benchEncoder({ ...bench, shapes: [{ batch: 1, seq: 9 }] })).rejects.toThrow(
      "longer than the model's 8 positions",
    )
    await expect(benchEncoder({ ...bench, plans: ['none'] })).rejects.toThrow('unknown plan none')
  })
})
