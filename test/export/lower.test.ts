/** Arithmetic on dimensions in exports, compared with the runtime, and its refusals. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { conversions, graphs, layouts, programs } from '../../specs/index.js'
import { graphSchema } from '../../src/emit/manifest/graphs.js'
import { exampleText } from '../../src/export/example.js'
import { headerText, namesOf } from '../../src/export/header.js'
import { identifiers } from '../../src/export/identifiers.js'
import { exportModel, type Lowered, lower, resolve } from '../../src/export/index.js'
import { expectSame } from '../../src/export/same.js'
import { constant } from '../../src/export/sizes.js'
import { sourceText } from '../../src/export/source.js'
import { torchText } from '../../src/export/torch.js'
import { parseExtent } from '../../src/ir/shape.js'
import type { ProgramDecl } from '../../src/lang/program/program.js'
import { readCheckpoint } from '../../src/models/encoder/calibration.js'
import { formatScales, type Scales } from '../../src/quant/scales.js'
import { perSite } from '../../src/quant/sites.js'
import { flatten } from '../../src/runtime/program_flatten.js'
import { inMemory } from '../../src/runtime/weight.js'
import { readManifestOf } from '../../src/toolchain/index.js'
import { heddle, punctuationModel, repository } from '../cli/host.js'

const manifest = await readManifestOf(`${repository}/generated`)
const declarations = { graphs, programs: Object.values<ProgramDecl>(programs), conversions }
const lowered = (name: string, plan = 'unfused', dims = {}, config?: Readonly<Record<string, unknown>>): Lowered => {
  const options = { dtype: 'f32', manifest, declarations, layouts, dims } as const
  return lower({ ...options, ...resolve(name, { ...options, plan, config }) })
}

describe('sizes', () => {
  it('are expressions of the sizes of a run; weights fix theirs', () => {
    const { dims, fixed, most, steps } = lowered('bert', 'best-encoder', {}, { layers: 1 })
    expect(dims).toEqual(['b', 's', 't'])
    expect(fixed).toMatchObject({ h: 12, d: 64, i: 3072 })
    expect(most).toEqual({ t: { factor: 1, dims: ['b', 's'] } })
    expect(steps.length).toBeGreaterThan(8)
    const single = lowered('layer_norm')
    expect(single.dims).toEqual(['m', 'n'])
    expect(single.storages.map(({ home, bytes }) => [home, bytes])).toEqual([
      ['input', { factor: 4, dims: ['m', 'n'] }],
      ['input', { factor: 4, dims: ['n'] }],
      ['input', { factor: 4, dims: ['n'] }],
      ['output', { factor: 4, dims: ['m', 'n'] }],
    ])
  })

  it('choose a plan by rows where their number is fixed, and say what they leave out where it is open', () => {
    const graph = graphs.encoder_layer_gelu?.graph
    const many = manifest.plans?.['ft-v1']?.encoder_layer_gelu
    if (graph === undefined || many === undefined) throw new Error('ft-v1 has no encoder layer')
    const byRows = { rows: parseExtent('b*s'), few: [{ most: 4, plan: 'unfused', graph }] }
    const plans = { ...manifest.plans, sized: { [graph.name]: graphSchema.parse({ ...many, byRows }) } }
    const sized = (dims: Readonly<Record<string, number>>) => {
      const options = {
        dtype: 'f32',
        manifest: { ...manifest, plans },
        declarations,
        layouts,
        dims,
        attrs: { eps: 1e-6, scale: 1 },
      } as const
      const { left, steps } = lower({ ...options, ...resolve(graph.name, { ...options, plan: 'sized' }) })
      return [left, steps.length]
    }
    const steps = (of: typeof graph) => of.nodes.filter(({ kind }) => kind !== 'view').length
    expect(sized({})).toEqual([['unfused'], steps(many)])
    expect(sized({ b: 2, s: 2 })).toEqual([[], steps(graph)])
    expect(sized({ b: 1, s: 5 })).toEqual([[], steps(many)])
    expect(steps(many)).toBeLessThan(steps(graph))
  })

  const padded = manifest.kernels.find(({ buffers }) => buffers.some(({ layout }) => layout === 'col32'))?.key ?? ''

  it('of padded layouts are expressions in every language, and unsupported ones are refused', () => {
    const mine = lowered(padded)
    const names = namesOf(mine)
    expect(sourceText(mine, names)).toMatch(/\(d_\w+ \+ 31\) \/ 32\)/)
    expect(headerText(mine, names)).toMatch(/layout col32: \(+\w+ \+ 31\) \/ 32\) \* 32\) \* \w+\) elements/)
    expect(exampleText(mine, names)).toMatch(/\(dims\.\w+ \+ 31\) \/ 32\)/)
    expect(torchText(mine, names)).toMatch(/torch\.empty\(\(\(+d_\w+ \+ 31\) \/\/ 32\).*,\)/)
    const { layouts: _, ...unsaid } = manifest
    const options = { dtype: 'f32', manifest: unsaid, declarations, layouts, dims: {} } as const
    expect(() => lower({ ...options, ...resolve(padded, { ...options, plan: 'unfused' }) })).toThrow(
      expect.objectContaining({ code: 'export.layout', message: 'the memory size of a value in layout col32 is unknown' }),
    )
  })

  it('are compared with the runtime: a different one is found', () => {
    const options = { dtype: 'f32', manifest, declarations, layouts, dims: {} } as const
    const { wired } = resolve('layer_norm', { ...options, plan: 'unfused' })
    const mine = lowered('layer_norm')
    const dims = { m: 3, n: 7 }
    const flat = flatten({ ...wired, dims, types: {}, manifest, layouts, architecture: 'simt', weights: new Map() })
    expect(() => expectSame(mine, flat, dims)).not.toThrow()
    const [first, ...others] = mine.storages
    const step = mine.steps[0]
    if (first === undefined || step === undefined) throw new Error('nothing was lowered')
    const twins: Lowered[] = [
      { ...mine, storages: [{ ...first, bytes: constant(84 + 4) }, ...others] },
      { ...mine, steps: [{ ...step, numbers: step.numbers.toReversed() }] },
      { ...mine, steps: [{ ...step, attrs: [0.5] }] },
      { ...mine, steps: [{ ...step, storages: [0, 2, 1, 3] }] },
    ]
    for (const twin of twins)
      expect(() => expectSame(twin, flat, dims)).toThrow(expect.objectContaining({ code: 'export.sizes' }))
  })
})

describe('refusals give the reason', () => {
  const code = (expected: string, message: string | RegExp) =>
    expect.objectContaining({ code: expected, message: expect.stringMatching(message) })

  it('of names and dimensions', () => {
    expect(() => lowered('nothing')).toThrow(
      code('export.unknown', 'there is no program or graph nothing, and no kernel nothing in f32'),
    )
    expect(() => lowered('layer_norm', 'unfused', { q: 3 })).toThrow(code('export.dims', 'layer_norm has no dimension q'))
    expect(() => lowered('layer_norm', 'unfused', {}, { layers: 1 })).toThrow(
      code('export.config', 'layer_norm is not a program'),
    )
    expect(() => identifiers(['a b', 'a_b'])).toThrow(code('export.name', 'a b and a_b are both called a_b in C'))
    expect(identifiers(['lengths of sequences', 'int', '2x'])).toEqual(['lengths_of_sequences', '_int', '_2x'])
  })

  it('of values that do not follow from sizes', () => {
    expect(() => lowered('llama_beams', 'unfused', {}, { layers: 1 })).toThrow(
      code('export.dims', /llama_beams does not run at every size: .*dimension k is/),
    )
    expect(() => lowered('bert', 'int8-row', {}, { layers: 1 })).toThrow(code('export.scales', 'plan int8-row needs a scale'))
  })

  it('of scales that are not the model’s', async () => {
    const llama = `${repository}/test/data/models/llama-families/qwen3`
    const asked = (name: string, plan: string, model: string, scales?: string) =>
      exportModel(name, model, { plan, dtype: 'f32', manifest, declarations, scales })
    const file = `${repository}/package.json`
    await expect(asked('bert', 'best-encoder-int8', punctuationModel)).rejects.toThrow('needs a scale for x of layer0')
    await expect(asked('bert', 'best-encoder-int8', punctuationModel, file)).rejects.toMatchObject({ code: 'scales.schema' })
    await expect(asked('llama_step', 'best-llama-w8a8', llama, file)).rejects.toThrow('expected a quantised encoder for --scales')
    const { exitCode, log } = await heddle(['export', 'bert', '--scales', file, '--out', '.heddle/refused'])
    expect(log).toContain('error[export.scales]: scales belong to a model')
    expect(exitCode).toBe(2)
  })
})

describe('a model folder', () => {
  const words = `${repository}/test/data/models/number-words`
  const llama = `${repository}/test/data/models/kjv-gqa`
  const opened = (name: string, model: string, config?: Readonly<Record<string, unknown>>) =>
    exportModel(name, model, { plan: 'unfused', dtype: 'f32', manifest, declarations, config })
  const statesOf = async (...given: Parameters<typeof opened>) => Object.keys((await opened(...given)).compiled.states)

  it('determines a program except for the choice of words, which is stated separately', async () => {
    expect(await statesOf('seq2seq_encoder', words)).toContain('memoryKeys0')
    expect(await statesOf('seq2seq_decoder', words)).not.toContain('cumulative')
    const choice = { kind: 'beams', maxSteps: 40, diversityRate: -0.5 }
    expect(await statesOf('seq2seq_decoder', words, { choice, steps: 2 })).toContain('cumulative')
    expect(await statesOf('llama_step', llama, { choice: 'sample_top' })).toContain('topK')
    expect(await statesOf('llama_step', llama, { processors: { penalised: true } })).toContain('penalty')
    expect(await statesOf('llama_beams', llama, { rule: { kind: 'hf', lengthPenalty: 1, earlyStopping: 2 } })).toContain(
      'poolRows',
    )
  })

  it('refuses settings that it determines itself, and unknown ones', async () => {
    const refused = (message: string) =>
      expect.objectContaining({ code: 'export.config', message: expect.stringContaining(message) })
    await expect(opened('llama_step', llama, { layers: 2 })).rejects.toThrow(
      refused('layers of llama_step is set by the model folder'),
    )
    await expect(opened('seq2seq_encoder', words, { factor: 1 })).rejects.toThrow(refused('factor of seq2seq_encoder'))
    await expect(opened('bert', punctuationModel, { head: 'states' })).rejects.toThrow(refused('head of bert'))
    await expect(opened('llama_step', llama, { choise: 'greedy' })).rejects.toThrow(refused('llama_step has no setting choise'))
    await expect(opened('llama_step', llama, { choice: 'best' })).rejects.toThrow(refused('llama_step: choice'))
    await expect(opened('llama_step', llama, { processors: { banned: true } })).rejects.toThrow(refused('processors'))
    await expect(opened('encoder_layer', llama)).rejects.toMatchObject({ code: 'export.model' })
  })
})

describe('a model with scales', () => {
  it('has the weights that the maxima of the scales file make', async () => {
    const { identity: model } = await readCheckpoint(punctuationModel)
    const layers = Array.from({ length: model.layers }, () => perSite(() => 1))
    const folder = await mkdtemp(join(tmpdir(), 'heddle-export-'))
    const integersOf = async (weights: Scales['weights']): Promise<Int8Array> => {
      const scales = join(folder, 'scales.json')
      await writeFile(scales, formatScales({ model, method: { name: 'imported' }, layers, weights }))
      const asked = { plan: 'best-encoder-int8', dtype: 'f32', manifest, declarations, scales } as const
      const prepared = (await exportModel('bert', punctuationModel, asked)).prepared(layouts)
      const [, fc1] = Object.entries(prepared).find(([name]) => name.startsWith('layer1.fc1Weight:int8')) ?? []
      if (fc1 === undefined) throw new Error('no weight')
      return new Int8Array((await inMemory(fc1)).data)
    }
    try {
      const cutOff = (values: Int8Array): number => values.filter((value) => Math.abs(value) === 127).length
      const [own, cut] = [await integersOf(undefined), await integersOf([{}, { fc1: 0.05 }, {}, {}])]
      // Of each channel the largest is 127 by its own maximum; of 0.05 and more, all are.
      expect(cutOff(cut)).toBeGreaterThan(2 * cutOff(own))
      expect(await integersOf([{ fc1: 0.05 }, {}, {}, {}])).toEqual(own)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('source', () => {
  it('has the names and the shapes of the program', () => {
    const step = lowered('llama_step', 'best-llama', {}, { layers: 1 })
    const names = namesOf(step)
    expect(headerText(step, names)).toContain('llama_step_state_keys0 = ')
    expect(sourceText(step, names)).toMatch(/Size\(\d+\) \* d_r \* d_u/)
    const python = torchText(step, names)
    expect(python).toContain('def llama_step(states: torch.Tensor, program: int, f: int, r: int, s: int, u: int) -> None:')
    expect(python).toContain('mutates_args=("states",)')
    const bert = lowered('bert', 'best-encoder', {}, { layers: 1 })
    expect(torchText(bert, namesOf(bert))).toContain('    d_t = d_b * d_s if t < 0 else t\n')
  })

  it('takes conditions as bytes', () => {
    const pairs = lowered('bert_pairs', 'unfused', {}, { layers: 1 })
    // The number of u8 in native/include/heddle/abi.h.
    expect(exampleText(pairs, namesOf(pairs))).toMatch(/\{"mask", 5, \{/)
  })
})

describe('constants of kernels', () => {
  it('are waited for if they are inputs, and must not be written by steps', () => {
    expect(lowered('matmul_bias__f32').fenced).toBe(true)
    expect(lowered('layer_norm').fenced).toBe(false)
    expect(lowered('bert', 'best-encoder', {}, { layers: 1 }).fenced).toBe(false)
    const graph = manifest.kernels.map((entry) =>
      entry.key === 'layer_norm__f32'
        ? { ...entry, buffers: entry.buffers.map((each) => (each.name === 'x' ? { ...each, constant: true as const } : each)) }
        : entry,
    )
    const options = { dtype: 'f32', manifest: { ...manifest, kernels: graph }, declarations, layouts, dims: {} } as const
    const found = resolve('bert', { ...options, plan: 'unfused', config: { layers: 1 } })
    expect(() => lower({ ...options, ...found })).toThrow(expect.objectContaining({ code: 'export.constant' }))
  })
})
