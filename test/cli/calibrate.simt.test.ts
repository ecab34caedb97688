/** `heddle calibrate` on the example model: files, table and chart, import of exported files, and refusals. */
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { formatSafetensors, readSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { readCheckpoint } from '../../src/models/encoder/calibration.js'
import { parseScales, readScales } from '../../src/quant/scales.js'
import { sites } from '../../src/quant/sites.js'
import { heddle, punctuationModel } from './host.js'

let work: string

beforeAll(async () => {
  const { exitCode, log } = await heddle(['build', '--target', 'simt', '--for', punctuationModel])
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
})
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-calibrate-'))
  const { items } = JSON.parse(await readFile(join(punctuationModel, 'test-set.json'), 'utf8')) as {
    items: { input_ids: number[] }[]
  }
  await writeFile(join(work, 'set.json'), JSON.stringify({ items: items.slice(0, 4) }))
  const lines = [...items.slice(0, 4).map(({ input_ids }) => ({ input_ids })), { text: 'in the beginning' }]
  await writeFile(join(work, 'cases.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
})
afterEach(() => rm(work, { recursive: true }))

const at = (name: string): string => join(work, name)
const calibrate = (...argv: readonly string[]) => heddle(['calibrate', punctuationModel, '--device', 'simt', ...argv])

describe('heddle calibrate', () => {
  test('writes scales of this model, and shows them', async () => {
    const { exitCode, out, log } = await calibrate(
      '--cases',
      at('cases.jsonl'),
      '--out',
      at('s.json'),
      '--amax-list',
      at('a.json'),
    )
    expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
    const { identity } = await readCheckpoint(punctuationModel)
    const scales = await readScales(at('s.json'), identity)
    expect(scales).toMatchObject({ method: { name: 'percentile', percentile: 99.99 }, calibration: { cases: 5, dtype: 'f32' } })
    expect(scales.layers).toHaveLength(4)
    expect(scales.layers.every((layer) => sites.every((site) => layer[site] > 0 && layer[site] < 100))).toBe(true)
    for (const site of sites) expect(out).toContain(`\n${site}\n  0 █`)
    expect(out).toContain('│ layer │ x ')
    expect(log).toContain('5 cases of ')
    expect(log).toContain('10/10 histograms')

    const imported = await heddle(['calibrate', punctuationModel, '--import', at('a.json'), '--out', at('again.json'), '--json'])
    expect(imported).toMatchObject({ exitCode: 0 })
    const again = await readScales(at('again.json'), identity)
    expect(again.layers).toEqual(
      scales.layers.map((layer) => Object.fromEntries(sites.map((site) => [site, Math.fround(layer[site])]))),
    )
    expect(JSON.parse(imported.out)).toMatchObject({ scales: { method: { name: 'imported' } } })
  })

  test('quantises weights per matrix on request, and notes it in its list', async () => {
    const argv = ['--cases', at('set.json'), '--method', 'max', '--weights', 'per-tensor', '--amax-list', at('a.json')]
    expect(await calibrate(...argv, '--out', at('s.json'))).toMatchObject({ exitCode: 0 })
    const { weights = [] } = await readScales(at('s.json'))
    const own = await (await readCheckpoint(punctuationModel)).weightMaxima()
    expect(weights).toHaveLength(4)
    for (const [layer, maxima] of weights.entries()) {
      expect(Object.values(maxima)).toEqual(own[layer]?.map((channels) => Math.max(...channels)))
    }
    // The list has a number for each channel. Imported, exported and imported again, files are the same.
    const imported = async (list: string, out: string, again: string) =>
      expect(
        await heddle(['calibrate', punctuationModel, '--import', at(list), '--out', at(out), '--amax-list', at(again)]),
      ).toMatchObject({
        exitCode: 0,
        log: expect.stringMatching(/\d+ channels of weights in 4 layers: \d+ have maxima that differ/),
      })
    await imported('a.json', 'first.json', 'b.json')
    await imported('b.json', 'second.json', 'c.json')
    const texts = await Promise.all(['a', 'b', 'c', 'first', 'second'].map((name) => readFile(at(`${name}.json`), 'utf8')))
    expect(new Set(texts).size).toBe(2)
    expect((await readScales(at('second.json'))).weights).toEqual(weights)
  })

  test('imports maxima of weights, reports those that differ from the actual ones, and refuses those that would lose weights', async () => {
    const argv = ['--cases', at('set.json'), '--method', 'max', '--amax-list', at('a.json'), '--out', at('s.json')]
    expect(await calibrate(...argv)).toMatchObject({ exitCode: 0 })
    const importing = async (change: (layer: number[]) => void) => {
      const list = JSON.parse(await readFile(at('a.json'), 'utf8')) as { layers: number[][] }
      change(list.layers[1] ?? [])
      await writeFile(at('changed.json'), JSON.stringify(list))
      return heddle(['calibrate', punctuationModel, '--import', at('changed.json'), '--out', at('i.json')])
    }
    expect((await importing(() => {})).log).toContain('layers: all have the maxima of the weights themselves')
    const changed = await importing((numbers) => numbers.splice(80, 2, 0.25, 0.5))
    expect(changed.log).toContain('layers: 2 have maxima that differ from those of their weights')
    expect((await readScales(at('i.json'))).weights?.[1]?.query).toEqual(expect.arrayContaining([0.25, 0.5]))
    expect(await importing((numbers) => numbers.splice(81, 1, 0))).toMatchObject({
      exitCode: 2,
      log: expect.stringMatching(/^error\[quant\.maxima\]: tensor query of layer 1: the maximum of channel 1 is 0, its weights/),
    })
  })

  test("reads the maxima of a checkpoint's quantisers, and asks for missing ones", async () => {
    const states = {
      ...{ query: 'attention.self.query._input_quantizer', queryBias: 'attention.self.matmul_q_input_quantizer' },
      ...{ keyBias: 'attention.self.matmul_k_input_quantizer', valueBias: 'attention.self.matmul_v_input_quantizer' },
      ...{ probabilities: 'attention.self.matmul_a_input_quantizer', merged: 'attention.output.dense._input_quantizer' },
      ...{ attentionNorm: 'intermediate.dense._input_quantizer', fc1Activation: 'output.dense._input_quantizer' },
      key: 'attention.self.key._weight_quantizer',
    }
    // A model with states that this test makes up: numbers by layer and state.
    const amax = (layer: number, i: number): number => 1 + layer + i / 8
    const { tensors } = await readSafetensors(join(punctuationModel, 'model.safetensors'))
    const names = Object.values(states)
    const added = Array.from({ length: 4 }, (_, layer) =>
      names.map((name, i): [string, StoredTensor] => [
        `bert.encoder.layer.${layer}.${name}._amax`,
        { dtype: 'F32', shape: [], data: new Uint8Array(Float32Array.of(amax(layer, i)).buffer) },
      ]),
    ).flat()
    const folder = at('qat')
    await cp(punctuationModel, folder, { recursive: true })
    await writeFile(join(folder, 'model.safetensors'), formatSafetensors(new Map([...tensors, ...added])))
    const trained = (...argv: readonly string[]) =>
      heddle(['calibrate', folder, '--device', 'simt', '--from-checkpoint', '--out', at('s.json'), ...argv])
    expect(await trained()).toMatchObject({
      exitCode: 2,
      log: expect.stringMatching(
        /^error\[calibrate\.missing\]: the checkpoint has no maximum of outputNorm of layer 3 \(encoder\.final_input_quantizer\._amax\)\nhint: also give --cases /,
      ),
    })
    const { log, exitCode } = await trained('--cases', at('set.json'))
    expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
    expect(log).toContain("35 of 36 activations have the maxima of the checkpoint's quantisers; 1 are calibrated: outputNorm of ")
    const { layers, weights, method, calibration } = await readScales(at('s.json'))
    expect({ method, cases: calibration?.cases }).toEqual({ method: { name: 'imported' }, cases: 4 })
    expect(layers.map(({ x, merged, outputNorm }) => [x, merged, outputNorm]).slice(0, 3)).toEqual(
      [0, 1, 2].map((layer) => [amax(layer, 0), amax(layer, 5), amax(layer + 1, 0)]),
    )
    expect(layers[3]?.outputNorm).toBeGreaterThan(0)
    expect(weights).toEqual([0, 1, 2, 3].map((layer) => ({ key: amax(layer, 8) })))
    // A model without quantisers has nothing to take.
    const none = await heddle(['calibrate', punctuationModel, '--from-checkpoint', '--out', at('n.json')])
    expect(none).toMatchObject({
      exitCode: 2,
      log: expect.stringContaining('error[calibrate.state]: the checkpoint has no quantiser states'),
    })
  })

  test('accepts a labelled set, and chooses less than the largest magnitude if that is better', async () => {
    const chosen = async (...argv: readonly string[]) => {
      expect(await calibrate('--cases', at('set.json'), '--out', at('s.json'), ...argv)).toMatchObject({ exitCode: 0 })
      return parseScales(await readFile(at('s.json'), 'utf8'), 's.json').layers
    }
    const [max, mse, entropy, half] = [
      await chosen('--method', 'max'),
      await chosen('--method', 'mse'),
      await chosen('--method', 'entropy'),
      await chosen('--percentile', '50'),
    ]
    for (const other of [mse, entropy, half]) {
      expect(other.every((layer, i) => sites.every((site) => layer[site] <= (max[i]?.[site] ?? 0)))).toBe(true)
      expect(other).not.toEqual(max)
    }
    expect(half.every((layer, i) => layer.fc1Activation < 0.5 * (mse[i]?.fc1Activation ?? 0))).toBe(true)
  })

  const refusals: readonly (readonly [what: string, argv: (work: string) => readonly string[], message: RegExp])[] = [
    [
      'neither cases nor a list',
      () => [],
      /^error\[calibrate\.input\]: expected either cases to run or a list to import\nhint: /,
    ],
    ['cases and a list', () => ['--cases', 'c', '--import', 'l'], /^error\[cli\.usage\]: .*cannot be used with/],
    ['no such file', (w) => ['--cases', join(w, 'none')], /^error\[run\.case\]: cannot read /],
    [
      'an unknown method',
      (w) => ['--cases', join(w, 'set.json'), '--method', 'best'],
      /^error\[cli\.usage\]: .*Allowed choices are max/,
    ],
    [
      'a percentile of 0',
      (w) => ['--cases', join(w, 'set.json'), '--percentile', '0'],
      /^error\[calibrate\.percentile\]: expected a percentile in \(0, 100\], got 0\n/,
    ],
    [
      'a percentile that is none',
      (w) => ['--cases', join(w, 'set.json'), '--percentile', 'x'],
      /^error\[cli\.usage\]: .*Expected a number/,
    ],
    [
      'a percentile of another method',
      (w) => ['--cases', join(w, 'set.json'), '--method', 'max', '--percentile', '99'],
      /^error\[calibrate\.percentile\]: method max has no percentile\n/,
    ],
    [
      'scales of weights beside a list that has them',
      () => ['--import', 'l', '--weights', 'per-tensor'],
      /^error\[calibrate\.input\]: --import has the maxima of weights, and --weights would choose others\n/,
    ],
    [
      'a method without cases',
      () => ['--import', 'l', '--method', 'mse'],
      /^error\[calibrate\.input\]: --method applies to calibration by cases, and there are none\n/,
    ],
    ['quantisers beside a list', () => ['--import', 'l', '--from-checkpoint'], /^error\[cli\.usage\]: .*cannot be used with/],
    ['no such list', (w) => ['--import', join(w, 'none')], /^error\[amax\.read\]: cannot read /],
    ['a list of another model', (w) => ['--import', join(w, 'set.json')], /^error\[amax\.json\]: /],
  ]
  test.each(refusals)('refuses %s and writes nothing', async (_, argv, message) => {
    const { exitCode, out, log } = await calibrate(...argv(work), '--out', at('s.json'))
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(log).toMatch(message)
    expect(existsSync(at('s.json'))).toBe(false)
  })

  test('refuses tokens that the model does not have', async () => {
    await writeFile(at('bad.jsonl'), '{"input_ids":[1]}\n{"input_ids":[999999]}\n')
    const { exitCode, log } = await calibrate('--cases', at('bad.jsonl'), '--out', at('s.json'))
    expect({ exitCode, log }).toMatchObject({ exitCode: 2, log: expect.stringContaining('error[run.token]: case 1') })
  })
  test('refuses a missing model', async () => {
    const { exitCode, log } = await heddle(['calibrate', at('none'), '--cases', at('set.json'), '--out', at('s.json')])
    expect({ exitCode, log }).toMatchObject({
      exitCode: 2,
      log: expect.stringContaining('error[run.model]: there is no model folder'),
    })
  })
})
