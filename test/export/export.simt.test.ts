/** Exported programs against the same programs run from Node: bit-identical, and different with another weight. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { layouts } from '../../specs/index.js'
import { noChanges } from '../../src/models/decoding/logit_changes.js'
import { readCheckpoint } from '../../src/models/encoder/calibration.js'
import { loadEncoder } from '../../src/models/encoder/encoder_pipeline.js'
import { openLlamaFiles } from '../../src/models/llama/open_files.js'
import { assembleSteps, modelDims } from '../../src/models/llama/programs.js'
import { llamaWeights } from '../../src/models/llama/weights.js'
import { batchMask, withoutMasks } from '../../src/models/parts/masks.js'
import { findPlan } from '../../src/program/index.js'
import { formatScales, perSite, type Scales } from '../../src/quant/index.js'
import { openDevice, tensor, zeros } from '../../src/runtime/api/index.js'
import { type OpenKernels, openKernels } from '../../src/runtime/open.js'
import { prepareWeights } from '../../src/runtime/prepare_weights.js'
import { buildProgram } from '../../src/runtime/program.js'
import { stateDecls } from '../../src/runtime/program_wiring.js'
import { openSession } from '../../src/runtime/session.js'
import { openStates } from '../../src/runtime/states.js'
import { which } from '../../src/toolchain/compilers.js'
import { runTool } from '../../src/toolchain/index.js'
import { heddle, punctuationModel, repository } from '../cli/host.js'
import { stack } from '../projects/stack/specs/index.js'
import { inTurn } from '../turns.js'
import { heddleIn, ownProject } from '../verify/own_project.js'
import { type Built, builtByCmake, f32, i32, linked, linkedTo, readTensors, type Tensors } from './built.js'

const folders: string[] = []
let opened: OpenKernels
const folder = async (): Promise<string> => {
  const made = await mkdtemp(join(tmpdir(), 'heddle-export-'))
  folders.push(made)
  return made
}
beforeAll(async () => {
  opened = await openKernels('simt', { root: repository })
})
afterAll(async () => {
  opened.device.close()
  await Promise.all(folders.map((each) => rm(each, { recursive: true, force: true })))
})

async function exported(name: string, ...argv: string[]): Promise<{ readonly built: Built; readonly weights: Tensors }> {
  const out = await folder()
  const outcome = await heddle(['export', name, '--out', out, '--target', 'simt', ...argv])
  expect(outcome.exitCode, outcome.log).toBe(0)
  return { built: await linked(repository, out, name), weights: await readTensors(join(out, 'weights.safetensors')) }
}

const floats = (tensors: Tensors, name: string): Float32Array => {
  const { data } = tensors[name] ?? expect.fail(`no ${name}`)
  return new Float32Array(data.slice().buffer)
}

/** The weights with one bit of one of them another. */
function changed(weights: Tensors, name: string): Tensors {
  const tensor = weights[name] ?? expect.fail(`no ${name}`)
  const data = tensor.data.slice()
  data[2] = (data[2] ?? 0) ^ 0x40
  return { ...weights, [name]: { ...tensor, data } }
}

/** Scales of the model that take 4 for the largest magnitude everywhere, and the file that has them. */
async function constantScales(): Promise<{ readonly scales: Scales; readonly file: string }> {
  const { config, identity } = await readCheckpoint(punctuationModel)
  const scales: Scales = {
    model: identity,
    method: { name: 'imported' },
    layers: Array.from({ length: config.layers }, () => perSite(() => 4)),
  }
  const file = join(await folder(), 'scales.json')
  await writeFile(file, formatScales(scales))
  return { scales, file }
}

describe('BERT', () => {
  const cases = [
    [2, 17, 40, 9, 3],
    [2, 8, 5, 33, 61, 12, 7, 3],
  ].map((inputIds) => ({ inputIds }))
  const [b, s] = [cases.length, 8]
  const ids = i32(
    [b, s],
    cases.flatMap(({ inputIds }) => [...inputIds, ...new Array(s - inputIds.length).fill(0)]),
  )
  const inputs = {
    ids,
    typeIds: i32([b, s], new Array(b * s).fill(0)),
    lengths: i32(
      [b],
      cases.map(({ inputIds }) => inputIds.length),
    ),
  }

  /** Output of a user's C++ program that uses only the exported folder. */
  async function labelled(exported: string): Promise<string> {
    const program = await linkedTo(join(import.meta.dirname, 'labels.cpp'), repository, exported, ['bert'])
    const texts = cases.map(({ inputIds }) => inputIds.join())
    const { exitCode, stdout, stderr } = await runTool(program, [join(exported, 'weights.safetensors'), ...texts], {})
    expect(exitCode, stderr).toBe(0)
    return stdout
  }

  it.each(inTurn(['unfused', 'best-encoder', 'best-encoder-int8', 'ft-v3-mode1', 'ft-v3-mode2-2r4r4-packed', 'int8-row']))(
    'under %s equals the pipeline, at sizes that the export never saw',
    async (plan) => {
      const calibrated = /int8|v3/.test(plan) ? await constantScales() : undefined
      const given = calibrated === undefined ? {} : { scales: calibrated.scales }
      const encoder = await loadEncoder(punctuationModel, { ...opened, plan, ...given })
      const expected = await encoder.run(cases)
      encoder.release()
      const scaled = calibrated === undefined ? [] : ['--scales', calibrated.file]
      const { built, weights } = await exported('bert', '--plan', plan, '--model', punctuationModel, ...scaled)
      const dims = { b, s, ...(/^(unfused|ft-v3-mode1)$/.test(plan) ? {} : { t: 13 }) }
      const rows = (outputs: Tensors): Float32Array[][] => {
        const logits = floats(outputs, 'logits')
        const width = logits.length / (b * s)
        return cases.map(({ inputIds }, i) =>
          inputIds.map((_, at) => logits.slice((i * s + at) * width, (i * s + at + 1) * width)),
        )
      }
      const own = expected.map((result) => (result.kind === 'token-classifier' ? [...result.logits] : expect.fail(result.kind)))
      expect(rows(await built.run(weights, inputs, dims))).toEqual(own)
      if (calibrated !== undefined) {
        const labels = expected.map((result) => (result.kind === 'token-classifier' ? result.labelIds.join(' ') : ''))
        expect(await labelled(built.folder)).toBe(labels.join('\n'))
      }
      const name = Object.keys(weights).find((each) => /layer1.*Weight/.test(each)) ?? expect.fail('no weight of a layer')
      expect(rows(await built.run(changed(weights, name), inputs, dims))).not.toEqual(own)
      if (plan !== 'best-encoder') return

      // Tensors that do not fit are refused by name and status.
      const { 'embeddings.words': words = expect.fail('no words'), ...others } = weights
      await expect(built.run(others, inputs, dims)).rejects.toThrow('status 100: weight embeddings.words is missing')
      await expect(built.run({ ...weights, more: words }, inputs, dims)).rejects.toThrow('status 101: bert has no weight more')
      const half = { ...words, dtype: 'F16' as const, shape: [...words.shape, 2] }
      await expect(built.run({ ...others, 'embeddings.words': half }, inputs, dims)).rejects.toThrow('status 102')
      const turned = { ...words, shape: words.shape.toReversed() }
      await expect(built.run({ ...others, 'embeddings.words': turned }, inputs, dims)).rejects.toThrow(
        /status 103: .* has shape \[.*given is/,
      )
      await expect(built.run(weights, inputs, { ...dims, t: 17 })).rejects.toThrow(
        'dimension t is 17, expected at most 16 at these sizes',
      )
      await expect(built.run(weights, inputs, { b, s: 0, t: 1 })).rejects.toThrow('status 104: bert: dimension s is 0')
    },
  )

  it('takes a program of 60 lines at most to label texts', async () => {
    const program = await readFile(join(import.meta.dirname, 'labels.cpp'), 'utf8')
    expect(program.trimEnd().split('\n').length).toBeLessThanOrEqual(60)
  })

  it('takes a mask of pairs as bytes', async () => {
    const masked = cases.map(({ inputIds }) => ({
      inputIds,
      attentionMask: inputIds.map((_, s) => inputIds.map((_, t) => (s === 2 || (s + t) % 3 === 0 ? 0 : 1))),
    }))
    const encoder = await loadEncoder(punctuationModel, { ...opened, plan: 'best-encoder' })
    const expected = await encoder.run(masked)
    encoder.release()
    const { built, weights } = await exported('bert_pairs', '--plan', 'best-encoder', '--model', punctuationModel)
    const mask = { dtype: 'U8' as const, shape: [b, s, s], data: batchMask(withoutMasks(masked), s) }
    const logits = floats(await built.run(weights, { ...inputs, mask }, { b, s, t: 13 }), 'logits')
    const own = expected.map((result) => (result.kind === 'token-classifier' ? result.logits.flatMap((row) => [...row]) : []))
    const width = logits.length / (b * s)
    expect(own).toEqual(cases.map(({ inputIds }, i) => [...logits.slice(i * s * width, (i * s + inputIds.length) * width)]))
  })
})

describe('the step of a LLaMA', () => {
  it.each(inTurn(['best-llama', 'best-llama-w8a8', 'fasterllama-v1']))(
    'under %s leaves the words and the caches that the runtime leaves, run after run',
    async (plan) => {
      const model = `${repository}/test/data/models/llama-families/qwen3`
      const runs = 3
      const dims = { r: 2, u: 16, s: 8, f: 1, q: 1 }
      const first = {
        step: [0],
        words: [7, 101],
        places: [0, 0],
        finished: [0, 0],
        ends: [-1],
        limit: [8, 8],
        history: new Array<number>(16).fill(0),
      }
      const { config, checkpoint } = await openLlamaFiles(model)
      const generation = { choice: { kind: 'greedy' }, maxNewTokens: 8, logprobs: false, ...noChanges } as const
      const { device, library, manifest } = opened
      const { compiled, wired } = assembleSteps(config, findPlan(plan, manifest.plans), generation, 1)
      const held = llamaWeights(config, checkpoint, 'f32', 'stored')
      const weights = prepareWeights(wired.applications, held, layouts)
      const session = await openSession({ device, library, manifest, layouts, weights })
      const sizes = { ...modelDims(config), ...dims }
      const types = { T: 'f32' } as const
      const states = await openStates({ device, layouts }, stateDecls(compiled, sizes, types))
      for (const [name, values] of Object.entries(first)) await states.write(name, Int32Array.from(values))
      const kept = Object.entries(compiled.states).map(([name, { next }]) => {
        const memory = states.tensors[name] ?? expect.fail(`no state ${name}`)
        return [name, { tensor: memory, ...(next === undefined ? {} : { next }) }] as const
      })
      const program = await buildProgram({ session, ...wired, states: Object.fromEntries(kept), dims: sizes, types })
      await program.run({}, { repeats: runs })
      const expected: Record<string, unknown> = {}
      for (const [name] of kept) {
        const values = await states.read(name)
        expected[`state.${name}`] = Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('hex')
      }
      program.release()
      states.release()
      session.release()

      const { built, weights: own } = await exported('llama_step', '--plan', plan, '--model', model)
      const given = Object.fromEntries(
        Object.entries(first).map(([name, values]) => [`state.${name}`, i32([values.length], values)]),
      )
      const left = async (tensors: Tensors): Promise<Record<string, unknown>> => {
        const outputs = await built.run(tensors, given, dims, runs)
        return Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => [name, Buffer.from(data).toString('hex')]))
      }
      expect(Object.keys(expected).length).toBeGreaterThan(8)
      expect(await left(own)).toEqual(expected)
      expect(await left(changed(own, 'rotation.cos'))).not.toEqual(expected)
    },
  )
})

describe("a user's program", () => {
  it('builds by CMake and runs as from Node', async () => {
    const root = await ownProject('stack')
    folders.push(root)
    expect((await heddleIn(root, 'gen')).code).toBe(0)
    const [m, n] = [5, 24]
    const numbers = (count: number, seed: number) =>
      Float32Array.from({ length: count }, (_, i) => ((i * 37 + seed * 11) % 64) / 64 - 0.5)
    const names = ['layer0', 'layer1', 'layer2', 'layer3', 'memory']
    const own = names.flatMap((name, i) => [
      [`${name}.weight`, [n, n], numbers(n * n, i)] as const,
      [`${name}.bias`, [n], numbers(n, i + 9)] as const,
    ])
    const x = numbers(m * n, 3)
    const device = await openDevice('simt', { root })
    const model = await device.load(stack, {
      plan: 'fused',
      weights: Object.fromEntries(own.map(([name, shape, values]) => [name, tensor('f32', shape, values)])),
      states: { memory: zeros('f32', [m, n]) },
    })
    await model.run({ x: tensor('f32', [m, n], x) })
    const { y } = await model.run({ x: tensor('f32', [m, n], x) })
    await device.close()

    const out = join(root, 'out')
    const { code, log } = await heddleIn(root, 'export', 'stack', '--plan', 'fused', '--out', out, '--dims', `n=${n}`)
    expect(code, log).toBe(0)
    const built = await builtByCmake(out)
    const weights = Object.fromEntries(own.map(([name, shape, values]) => [name, f32(shape, values)]))
    const outputs = await built.run(weights, { x: f32([m, n], x) }, { m }, 2)
    expect(floats(outputs, 'y')).toEqual(y.data)
    expect(floats(outputs, 'state.memory')).toEqual(y.data)
    const once = await built.run(weights, { x: f32([m, n], x) }, { m }, 1)
    expect(floats(once, 'y')).not.toEqual(y.data)
    expect(await readFile(join(out, 'include/stack.h'), 'utf8')).toContain('int32_t stack_run(')

    // The op, under a stand-in for the part of PyTorch that it uses: `heddle selftest` runs all of it with a real PyTorch.
    const python = await which('python3')
    if (python === undefined) return
    const given = { x: [...x], weights: own.map(([name, shape, values]) => [name, shape, [...values]]) }
    const [script, file] = [join(import.meta.dirname, 'python/run_stack.py'), join(root, 'given.json')]
    await writeFile(file, JSON.stringify(given))
    const ran = await runTool(python, ['-B', script, out, String(m), String(n), file], {})
    expect(ran.exitCode, ran.stderr).toBe(0)
    const none = new Array(m * n).fill(0)
    const [first, second] = [[...floats(once, 'y')], [...y.data]]
    expect(JSON.parse(ran.stdout)).toEqual({
      schemas: ['stack mutates states'],
      fake: [m, n],
      ...{ began: none, once: first, twice: second, left: second, again: first },
      shape: expect.stringMatching(/^ValueError: x is .*expected .*\[5, 24\]/),
      weights: expect.stringMatching(/^HeddleError: weight .* is missing/),
      state: "KeyError: 'nothing'",
    })
  })
})
