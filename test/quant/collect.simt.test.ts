/** Collection on the simt device against activations that the interpreter computes: every site of every layer. */
import { rm } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { outputsOf } from '../../src/ir/graph.js'
import { bertDims } from '../../src/models/encoder/bert.js'
import { openCalibration, readCheckpoint } from '../../src/models/encoder/calibration.js'
import { type CollectOptions, collect } from '../../src/quant/collect.js'
import type { Histogram } from '../../src/quant/histogram.js'
import { observeHistograms, observeMaxima } from '../../src/quant/observe.js'
import { type PerSite, perSite, type Site, sites } from '../../src/quant/sites.js'
import { threshold } from '../../src/quant/thresholds.js'
import { modelTolerance } from '../../src/verify/tolerance.js'
import { asHost, type RandomModel, randomBert, writeModel } from '../models/fixtures.js'
import { interpret } from '../models/interpreter.js'
import { openSimtKernels } from '../models/simt.js'

let simt: Awaited<ReturnType<typeof openSimtKernels>>
beforeAll(async () => {
  simt = await openSimtKernels()
})

const cases = [[3, 7, 9, 11, 2], [5], [8, 1, 4, 4, 20], [6, 30, 31, 32, 33, 34, 35, 36, 9]]
const random = () => randomBert({ num_hidden_layers: 2, hidden_size: 48, num_attention_heads: 3 })
const bins = 256

/** Opens a model and hands it over with its checkpoint. */
async function withModel<T>(
  model: Pick<RandomModel, 'json' | 'tensors'>,
  use: (open: Awaited<ReturnType<typeof openCalibration>>, checkpoint: Awaited<ReturnType<typeof readCheckpoint>>) => Promise<T>,
  dtype: 'f32' | 'f16' = 'f32',
): Promise<T> {
  const dir = await writeModel(model)
  const checkpoint = await readCheckpoint(dir)
  const open = await openCalibration(checkpoint, { ...simt, dtype })
  try {
    return await use(open, checkpoint)
  } finally {
    open.session.release()
    await rm(dir, { recursive: true })
  }
}

const collected = (
  model: Pick<RandomModel, 'json' | 'tensors'>,
  given = cases,
  options: CollectOptions = {},
  dtype?: 'f32' | 'f16',
) =>
  withModel(
    model,
    (open) =>
      collect(
        open,
        given.map((inputIds) => ({ inputIds })),
        { bins, ...options },
      ),
    dtype,
  )

/** Every activation of every layer over all cases, by the interpreter. */
const activations = (given: readonly (readonly number[])[]): Promise<PerSite<number[]>[]> =>
  withModel(random(), async (open, { config, weights }) => {
    const layers = open.layers.map(() => perSite((): number[] => []))
    for (const ids of given) {
      const applications = open.applications.slice(0, -1).map((application) => {
        const layer = open.layers.indexOf(application.label)
        if (layer < 0) return application
        const { graph } = application
        const named = sites.map((site) => {
          const node = graph.nodes.find(({ name }) => name === site)
          return [site, (node === undefined ? graph.inputs[site] : outputsOf(node)[0]) ?? -1] as const
        })
        const wires = named.map(([site]) => [site, `${layer}.${site}`])
        return {
          ...application,
          graph: { ...graph, outputs: { ...graph.outputs, ...Object.fromEntries(named) } },
          outputs: { ...application.outputs, ...Object.fromEntries(wires) },
        }
      })
      const seq = ids.length
      const inputs = {
        ids: { shape: [seq], data: ids },
        typeIds: { shape: [seq], data: ids.map(() => 0) },
        lengths: { shape: [1], data: [seq] },
      }
      const values = interpret(applications, inputs, await asHost(weights('f32')), bertDims(config, { batch: 1, seq }))
      for (const [i, layer] of layers.entries()) {
        for (const site of sites) layer[site].push(...Array.from(values.get(`${i}.${site}`)?.data ?? []))
      }
    }
    return layers
  })

/** Description of a wrong histogram of `values`; empty if every difference is a value at the edge of a bin. */
function complaint({ amax, counts }: Histogram, values: readonly number[]): string {
  const { absolute } = modelTolerance('f32', 2)
  const most = values.reduce((top, value) => Math.max(top, Math.abs(value)), 0)
  if (Math.abs(amax - most) > absolute) return `amax is ${amax}, expected ${most}`
  const expected = new Float64Array(counts.length)
  let atEdge = 0
  for (const value of values) {
    const place = (Math.abs(value) / amax) * counts.length
    const bin = Math.min(Math.floor(place), counts.length - 1)
    expected[bin] = (expected[bin] ?? 0) + 1
    if (Math.abs(place - Math.round(place)) <= (absolute / amax) * counts.length) atEdge++
  }
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total !== values.length) return `${total} values are counted, expected ${values.length}`
  const differ = counts.reduce((sum, count, bin) => sum + Math.abs(count - (expected[bin] ?? 0)), 0)
  return differ <= 2 * atEdge ? '' : `counts differ by ${differ}, ${atEdge} values lie at an edge`
}

describe('collection', () => {
  it('finds the maxima and distributions of every activation', async () => {
    const [found, wanted] = [await collected(random()), await activations(cases)]
    const complaints = found.flatMap((layer, i) =>
      sites.map((site) => `${i} ${site} ${complaint(layer[site], wanted[i]?.[site] ?? [])}`),
    )
    expect(complaints).toEqual(found.flatMap((_, i) => sites.map((site) => `${i} ${site} `)))
    expect(found[1]?.x).toEqual(found[0]?.outputNorm)
  })
  it('differs from a collection of other cases', async () => {
    const [found, wanted] = [await collected(random()), await activations([...cases.slice(1), [3, 7, 9, 11, 5]])]
    const wrong = sites.filter(
      (site) => complaint(found[1]?.[site] ?? { amax: 0, counts: new Float64Array() }, wanted[1]?.[site] ?? []) !== '',
    )
    expect(wrong).toEqual(sites)
  })
  it('counts what tokens see under their mask', async () => {
    const [ids = []] = cases
    const masked = async (pairs: Uint8Array | undefined) => {
      const dir = await writeModel(random())
      const open = await openCalibration(await readCheckpoint(dir), { ...simt, dtype: 'f32', masked: true })
      try {
        return await collect(open, [{ inputIds: ids, pairs }], { bins })
      } finally {
        open.session.release()
        await rm(dir, { recursive: true })
      }
    }
    const whole = await collected(random(), [ids])
    expect(await masked(undefined)).toEqual(whole)
    expect(await masked(new Uint8Array(ids.length ** 2).fill(1))).toEqual(whole)
    // A token that sees itself alone has the weight 1 in each of three heads; all other weights are 0.
    const alone = Uint8Array.from({ length: ids.length ** 2 }, (_, at) => (at % (ids.length + 1) === 0 ? 1 : 0))
    for (const { probabilities } of await masked(alone)) {
      expect([probabilities.amax, probabilities.counts.at(-1)]).toEqual([1, 3 * ids.length])
      expect(probabilities.counts[0]).toBe(3 * ids.length * (ids.length - 1))
    }
  })
  it('does not depend on the order of the cases', async () =>
    expect(await collected(random(), [...cases].reverse())).toEqual(await collected(random())))
  it('runs in the requested storage type', async () => {
    const [halves, floats] = [await collected(random(), cases, {}, 'f16'), await collected(random())]
    const { absolute } = modelTolerance('f16', 2)
    for (const [i, layer] of halves.entries()) {
      for (const site of sites) expect(Math.abs(layer[site].amax - (floats[i]?.[site].amax ?? 0))).toBeLessThanOrEqual(absolute)
    }
    expect(halves[0]?.fc1Activation.amax).not.toBe(floats[0]?.fc1Activation.amax)
  })

  it('gives zero for activations without magnitude', async () => {
    const model = random()
    const zero = (name: string) => {
      const tensor = model.tensors.get(name)
      if (tensor === undefined) throw new Error(`no ${name}`)
      model.tensors.set(name, { ...tensor, data: new Uint8Array(tensor.data.byteLength) })
    }
    zero('encoder.layer.1.attention.self.value.weight')
    zero('encoder.layer.1.attention.self.value.bias')
    const [, layer] = await collected(model)
    for (const site of ['valueBias', 'merged'] as const) {
      expect(layer?.[site].amax).toBe(0)
      expect(layer?.[site].counts[0]).toBe(20 * 48)
      expect(layer && threshold(layer[site], { name: 'mse' })).toBe(0)
    }
    expect(layer?.outputNorm.amax).toBeGreaterThan(0)
  })

  it('refuses activations that are not finite, naming layer and site', async () => {
    const model = random()
    const name = 'encoder.layer.1.attention.self.value.weight'
    const tensor = model.tensors.get(name)
    if (tensor === undefined) throw new Error(`no ${name}`)
    // Finite weights whose matmuls overflow float32.
    const values = new Float32Array(tensor.data.byteLength / 4).fill(3e38)
    model.tensors.set(name, { ...tensor, data: new Uint8Array(values.buffer) })
    await expect(collected(model)).rejects.toMatchObject({
      code: 'calibrate.finite',
      message: 'layer 1, valueBias: an activation is not finite in f32',
    })
  })
  it('refuses no case, and stops on request', async () => {
    await expect(collected(random(), [])).rejects.toMatchObject({ code: 'calibrate.cases' })
    const cancel = new AbortController()
    const seen: string[] = []
    const progress: CollectOptions['progress'] = (done, total, pass) => {
      seen.push(`${done}/${total} ${pass}`)
      if (done === 5) cancel.abort(new Error('enough'))
    }
    await expect(collected(random(), cases, { signal: cancel.signal, progress })).rejects.toThrow('enough')
    expect(seen).toEqual(['1/8 maxima', '2/8 maxima', '3/8 maxima', '4/8 maxima', '5/8 histograms'])
  })
})

describe('observers', () => {
  it('do not change the results of a graph', () =>
    withModel(random(), async ({ applications }) => {
      const graph = applications.find(({ label }) => label === 'layer0')?.graph
      if (graph === undefined) throw new Error('no layer')
      for (const observed of [observeMaxima(graph, sites), observeHistograms(graph, sites, () => 1)]) {
        expect(observed.nodes.slice(0, graph.nodes.length)).toEqual(graph.nodes)
        expect(observed.outputs).toMatchObject(graph.outputs)
        expect(new Set(observed.nodes.map(({ name }) => name)).size).toBe(observed.nodes.length)
      }
    }))
  it('name a value that a graph does not have', () =>
    withModel(random(), async ({ applications }) => {
      const graph = applications[0]?.graph
      if (graph === undefined) throw new Error('no graph')
      expect(() => observeMaxima(graph, ['merged' as Site])).toThrow('graph embeddings has no value merged')
    }))
})
