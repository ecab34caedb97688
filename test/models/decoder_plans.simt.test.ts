/**
 * A decoder layer on simt, several steps in sequence with caches that stay on the device: every plan computes the same results as the unfused graph,
 * for every storage type, head size and number of beams, regardless of the contents of undecoded positions.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { decoderLayers } from '../../specs/graphs/decoder_layer.js'
import { readManifest } from '../../src/cli/pipeline.js'
import type { Manifest } from '../../src/emit/manifest/manifest.js'
import { evaluateExtent } from '../../src/ir/shape.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { encodeNumbers } from '../../src/runtime/numbers.js'
import { buildProgram } from '../../src/runtime/program.js'
import { openSession } from '../../src/runtime/session.js'
import { openStates } from '../../src/runtime/states.js'
import { compare } from '../../src/verify/compare.js'
import { integer, normal, random } from '../../src/verify/random.js'
import { betweenResults, tolerance } from '../../src/verify/tolerance.js'
import { type OpenSubject, openSubject, root } from '../conformance/simt.js'
import { modelTypes } from '../turns.js'

let manifest: Manifest
let subject: OpenSubject
beforeAll(async () => {
  manifest = await readManifest(root)
  subject = await openSubject()
})
afterAll(() => subject?.device.close())

type Float = 'f32' | 'f16' | 'bf16'
const first = 4
const steps = 3
const places = 9

interface Case {
  readonly layer: typeof decoderLayers.pre.relu
  readonly dtype: Float
  readonly batch: number
  readonly beams: number
  readonly headDim: number
}

/** Hidden states of every step, and both caches after the last. `unknown` fills undecoded positions. */
async function run({ layer, dtype, batch: b, beams: w, headDim: d }: Case, plan: string, unknown: number, ownPast = false) {
  const dims = { b, w, s: places, t: 7, h: 2, d, i: 48 }
  const { graph: declared } = layer
  const graph = manifest.plans?.[plan]?.[declared.name] ?? declared
  const next = random(`${declared.name} ${dtype} ${d}`)
  const shapeOf = (id: number): number[] => (declared.values[id]?.shape ?? []).map((extent) => evaluateExtent(extent, dims))
  const draw = (size: number, scale: number): Float64Array => Float64Array.from({ length: size }, () => scale * normal(next))
  const sizeOf = (shape: readonly number[]): number => shape.reduce((product, extent) => product * extent, 1)
  const parts = Object.fromEntries(
    Object.entries(declared.weights).map(([name, id]) => {
      const shape = shapeOf(id)
      return [name, { shape, data: draw(sizeOf(shape), 1 / Math.sqrt(shape.at(-1) ?? 1)) }]
    }),
  )
  const weights = Object.fromEntries(
    Object.keys(graph.weights).map((name) => {
      const names = graph.stacked?.[name] ?? [name]
      const chosen = names.flatMap((part) => parts[part] ?? [])
      const [rows = 0, ...rest] = chosen[0]?.shape ?? []
      const data = chosen.flatMap((part) => [...part.data])
      return [names.join('+'), { dtype, shape: [rows * chosen.length, ...rest], data: encodeNumbers(dtype, data) }]
    }),
  )
  const session = await openSession({ ...subject, manifest, weights })
  const cache = { dtype, shape: [b * w, places, 2, d], layout: 'split_heads' }
  const states = await openStates(session, { keys: cache, values: cache })
  const inputs = ['x', 'step', 'beams', 'memoryKeys', 'memoryValues', 'lengths']
  const program = await buildProgram({
    session,
    applications: [
      {
        label: 'layer',
        graph,
        inputs: Object.fromEntries([...inputs, 'keys', 'values'].map((name) => [name, name])),
        weights: Object.fromEntries(Object.keys(parts).map((name) => [name, name])),
        outputs: { hidden: 'hidden', keys: 'keys.1', values: 'values.1' },
        attrs: { scale: 1 / Math.sqrt(d), eps: 1e-6 },
      },
    ],
    inputs,
    outputs: ['hidden'],
    states: {
      keys: { tensor: states.tensors.keys, next: 'keys.1' },
      values: { tensor: states.tensors.values, next: 'values.1' },
    },
    dims,
    types: { T: dtype },
  })
  try {
    for (const name of ['keys', 'values'] as const) {
      const drawn = draw(sizeOf(cache.shape), 1)
      await states.write(
        name,
        Float32Array.from(drawn, (value, at) => (Math.floor(at / d) % places < first ? value : unknown)),
      )
    }
    const memory = [draw(b * 7 * 2 * d, 1), draw(b * 7 * 2 * d, 1)].map((values) => encodeNumbers(dtype, values))
    const hidden: number[] = []
    for (let step = first; step < first + steps; step++) {
      const table = Int32Array.from({ length: b * w * places }, (_, at) => {
        const [row, place] = [Math.floor(at / places), at % places]
        const owner = Math.floor(row / w) * w + integer(next, 0, w - 1)
        return place < step && !ownPast ? owner : row
      })
      const { hidden: made } = await program.run({
        x: encodeNumbers(dtype, draw(b * w * 2 * d, 1)),
        step: encode('i32', Int32Array.of(step)),
        beams: encode('i32', table),
        memoryKeys: memory[0] ?? new Uint8Array(),
        memoryValues: memory[1] ?? new Uint8Array(),
        lengths: encode(
          'i32',
          Int32Array.from({ length: b }, (_, i) => 1 + ((i * 3) % 7)),
        ),
      })
      hidden.push(...decode(dtype, made ?? new Uint8Array()))
    }
    const kept = async (name: 'keys' | 'values') =>
      [...(await states.read(name))].filter((_, at) => Math.floor(at / d) % places < first + steps)
    return {
      hidden,
      caches: [...(await kept('keys')), ...(await kept('values'))],
      launches: program.steps.map(({ kind }) => kind),
    }
  } finally {
    program.release()
    states.release()
    session.release()
  }
}

const sizes = [
  { batch: 1, beams: 1, headDim: 32 },
  { batch: 3, beams: 2, headDim: 26 },
  { batch: 2, beams: 3, headDim: 64 },
]
const layers = [decoderLayers.pre.relu, decoderLayers.post.gelu]
const cases = layers.flatMap((layer) => modelTypes().flatMap((dtype) => sizes.map((size): Case => ({ layer, dtype, ...size }))))
const named = cases.map(
  (each) => [`${each.layer.name} ${each.dtype} ${each.batch}x${each.beams} of ${each.headDim}`, each] as const,
)

type Result = Awaited<ReturnType<typeof run>>

/** Differences beyond the tolerance of a layer. Plans round the matmuls in caches at different points, one before the bias and another after it. */
function differences(dtype: Float, actual: Result, expected: Result): string[] {
  return (['hidden', 'caches'] as const).flatMap((name) => {
    const scale = Math.sqrt(expected[name].reduce((sum, value) => sum + value ** 2, 0) / expected[name].length)
    const bound = betweenResults(tolerance({ dtype, class: 'model', length: 1, scale }))
    const { passed, summary } = compare(actual[name], expected[name], bound)
    return passed ? [] : [`${name}: ${summary}`]
  })
}

describe('a decoder layer', () => {
  it.each(named)('%s: its other plans equal unfused', async (_, given) => {
    const expected = await run(given, 'unfused', 0)
    const others = Object.entries(manifest.plans ?? {}).filter(
      ([name, graphs]) => name !== 'unfused' && given.layer.name in graphs,
    )
    expect(others.map(([name]) => name)).toEqual(expect.arrayContaining(['best-decoder', 'ft-v2.1']))
    for (const [plan] of others) {
      expect(differences(given.dtype, await run(given, plan, Number.NaN), expected), plan).toEqual([])
    }
  })

  it('notices a table that is ignored', async () => {
    const given = { layer: decoderLayers.pre.relu, dtype: 'bf16', batch: 2, beams: 3, headDim: 64 } as const
    const expected = await run(given, 'unfused', 0)
    expect(differences(given.dtype, await run(given, 'best-decoder', Number.NaN, true), expected)).toContainEqual(
      expect.stringMatching(/^hidden/),
    )
  })

  it.each([
    ['unfused', 1, 12, 27],
    ['ft-v2.1', 1, 6, 7],
    ['best-decoder', 1, 0, 8],
    ['best-decoder', 2, 0, 11],
  ])('is %s, at a batch of %i: %i matmuls of the library and %i kernels', async (plan, batch, matmuls, kernels) => {
    const { launches } = await run({ layer: decoderLayers.pre.relu, dtype: 'f16', batch, beams: 1, headDim: 32 }, plan, 0)
    expect(launches.filter((kind) => kind === 'matmul')).toHaveLength(matmuls)
    expect(launches.filter((kind) => kind === 'kernel')).toHaveLength(kernels)
    expect(launches.filter((kind) => kind === 'copy')).toHaveLength(0)
  })
})
