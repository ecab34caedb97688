/** Runs of LLaMA-like models on simt that end early: by a signal, for lack of memory, and on NaN logits. The next run is right after each of them. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { formatSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import type { NativeDevice, NativeSlice } from '../../src/runtime/native.js'
import { noise, writeModel } from './fixtures.js'
import { smallCheckpoint, smallLlama } from './llama_fixtures.js'
import { folderOf, goldenOf, withEnds, withLlama } from './llama_host.js'
import { openSimtKernels } from './simt.js'
import { smallDevice } from './small_device.js'

const { text } = goldenOf('smollm')
const prompt = { inputIds: text.input_ids.slice(0, 40) }

/** A signal that aborts when it is looked at for the `at`-th time, and how often it was. */
function countedSignal(at: number) {
  const controller = new AbortController()
  const { signal } = controller
  const looked = { times: 0 }
  signal.throwIfAborted = () => {
    looked.times++
    if (looked.times === at) controller.abort(new Error('enough'))
    AbortSignal.prototype.throwIfAborted.call(signal)
  }
  return { signal, looked }
}

describe('a run ends when its signal aborts, and the next one is right', () => {
  it('between two chunks of a prompt', async () => {
    await withLlama('smollm', {}, async (model) => {
      const options = { maxNewTokens: 6, chunk: 8 }
      const expected = await model.generate([prompt], options)
      // Looked at before the batch, and before each of five chunks.
      const { signal, looked } = countedSignal(4)
      await expect(model.generate([prompt], { ...options, signal })).rejects.toThrow('enough')
      expect(looked.times).toBe(4)
      expect(await model.generate([prompt], options)).toEqual(expected)
    })
  })

  it('between two runs of steps', async () => {
    await withLlama('smollm', {}, async (model) => {
      const options = { maxNewTokens: 24 }
      const expected = await model.generate([prompt], options)
      const controller = new AbortController()
      const seen: number[] = []
      const streamed = async () => {
        for await (const { ids } of model.stream([prompt], { ...options, signal: controller.signal })) {
          seen.push(...ids)
          if (seen.length >= 16) controller.abort(new Error('enough'))
        }
      }
      await expect(streamed()).rejects.toThrow('enough')
      expect(seen).toEqual(expected[0]?.ids.slice(0, 16))
      expect(await model.generate([prompt], options)).toEqual(expected)
    })
  })
})

/** A device that records the start and the end of runs of steps. */
function tracedDevice(opened: NativeDevice) {
  const trace: string[] = []
  const device: NativeDevice = {
    ...opened,
    program(steps) {
      const program = opened.program(steps)
      const { runAhead } = program
      return Object.assign(program, {
        async runAhead(outputs: readonly NativeSlice[]) {
          trace.push('asked')
          try {
            return await runAhead(outputs)
          } finally {
            trace.push('over')
          }
        },
      })
    },
  }
  return { device, trace }
}

it('the device has the next run of steps while the last is processed; one beyond the end of all texts has no effect', async () => {
  const opened = await openSimtKernels()
  const { device, trace } = tracedDevice(opened.device)
  const options = { maxNewTokens: 40, capacity: 128 }
  const [whole] = await withLlama('smollm', { ...opened, device }, (model) => model.generate([prompt], options))
  const words = whole?.ids ?? []
  expect(words).toHaveLength(40)
  expect(trace.slice(0, 3)).toEqual(['asked', 'asked', 'over'])
  expect(trace.filter((event) => event === 'asked')).toHaveLength(5)
  // A token that was not chosen before ends the text, when one more run was requested, but not all.
  const end = words.findIndex((id, at) => at >= 8 && words.indexOf(id) === at)
  const runs = Math.floor(end / 8) + 1
  expect(runs).toBeLessThan(4)
  const dir = await withEnds('smollm', [words[end] ?? -1])
  try {
    await withLlama('smollm', { ...opened, device, dir }, async (model) => {
      trace.splice(0)
      const expected = { ids: words.slice(0, end), finish: 'end' }
      expect(await model.generate([prompt], options)).toEqual([expected])
      expect(trace.filter((event) => event === 'asked')).toHaveLength(runs + 1)
      expect(await model.generate([prompt, prompt], { ...options, batch: 1 })).toEqual([expected, expected])
      const streamed: number[] = []
      for await (const { ids } of model.stream([prompt], options)) streamed.push(...ids)
      expect(streamed).toEqual(expected.ids)
      // The cache is the same as without the run beyond the end.
      const longer = { inputIds: [...prompt.inputIds, ...words.slice(0, end), 5, 6] }
      let reused = 0
      const again = await model.generate([longer], { ...options, reuse: true, reused: (tokens) => (reused = tokens) })
      expect(reused).toBe(prompt.inputIds.length + end - 1)
      expect(again).toEqual(await model.generate([longer], options))
    })
  } finally {
    await rm(dir, { recursive: true })
  }
})

it('caches that memory has no room for are a typed error, and a smaller run works', async () => {
  let bound = Number.POSITIVE_INFINITY
  const opened = await openSimtKernels()
  const { device } = smallDevice(opened.device, () => bound)
  await withLlama('smollm', { ...opened, device }, async (model) => {
    const [expected] = await model.generate([prompt], { maxNewTokens: 2 })
    bound = 4_000_000
    await expect(model.generate([prompt], { maxNewTokens: 2, capacity: 1024, invariant: 64 })).rejects.toMatchObject({
      code: 'states.memory',
      message: expect.stringMatching(/^states need \d+ bytes of device memory, \d+ are free$/),
    })
    expect(await model.generate([prompt], { maxNewTokens: 2 })).toEqual([expected])
  })
})

it('incomplete folders are refused with the missing part, and the next one loads', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-lacking-'))
  const shard = 'model-00002-of-00006.safetensors'
  const path = join(folder, shard)
  const tensor = 'model.layers.1.mlp.up_proj.weight'
  const kernels = await openSimtKernels()
  const load = async (dir: string) =>
    withLlama('smollm', { dir, ...kernels }, (model) => model.generate([prompt], { maxNewTokens: 2 }))
  const refused = async (dir: string, code: string, message: RegExp) =>
    expect(load(dir)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  try {
    const expected = await load(folderOf('smollm'))
    await cp(folderOf('smollm'), folder, { recursive: true })
    const whole = await readFile(path)
    await writeFile(path, whole.subarray(0, -2))
    await refused(folder, 'safetensors.truncated', new RegExp(shard))
    await rm(path)
    await refused(folder, 'safetensors.read', new RegExp(shard))
    await writeFile(path, whole)
    expect(await load(folder)).toEqual(expected)

    const changed = async (change: (tensors: Map<string, StoredTensor>) => void): Promise<string> => {
      const { tensors } = smallCheckpoint(smallLlama)
      change(tensors)
      return writeModel({ json: smallLlama, tensors })
    }
    const missing = await changed((tensors) => tensors.delete(tensor))
    await refused(missing, 'weights.missing', /up_proj\.weight \[\d+, 48\] is missing/)
    const misshapen = await changed((tensors) => {
      const before = tensors.get(tensor)
      if (before !== undefined) tensors.set(tensor, { ...before, shape: [...before.shape].reverse() })
    })
    await refused(misshapen, 'weights.shape', /up_proj\.weight.*\[48, (\d+)\].*\[\1, 48\]/)
    expect(await load(folder)).toEqual(expected)
    await Promise.all([missing, misshapen].map((dir) => rm(dir, { recursive: true })))
  } finally {
    await rm(folder, { recursive: true })
  }
})

it('NaN logits are a finding, for texts, beams and scores; another text continues', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'heddle-nan-'))
  const { tensors } = smallCheckpoint(smallLlama)
  const next = noise(11)
  const wrong = 5
  for (const [name, { shape, data }] of tensors) {
    const values = new Float32Array(data.buffer)
    const scale = name.endsWith('o_proj.weight') ? 1e37 : 0.4
    for (const [i] of values.entries()) values[i] = shape.length === 1 ? 1 : next() * scale
    // One token is near the largest float32, so attention overflows on it.
    if (name.endsWith('embed_tokens.weight')) values.fill(3.3e38, wrong * 48, (wrong + 1) * 48)
  }
  await writeFile(join(dir, 'config.json'), JSON.stringify(smallLlama))
  await writeFile(join(dir, 'model.safetensors'), formatSafetensors(tensors))
  try {
    await withLlama('smollm', { dir }, async (model) => {
      const [good, bad] = [{ inputIds: [3, 4, 7] }, { inputIds: [3, 4, wrong] }]
      const expected = await model.generate([good], { maxNewTokens: 3 })
      const finding = { code: 'run.value', message: expect.stringMatching(/^case 1/) }
      await expect(model.generate([good, bad], { maxNewTokens: 3 })).rejects.toMatchObject(finding)
      const streamed = async () => {
        for await (const _ of model.stream([good, bad], { maxNewTokens: 30 }));
      }
      await expect(streamed()).rejects.toMatchObject(finding)
      await expect(model.generate([good, bad], { maxNewTokens: 3, beams: 2 })).rejects.toMatchObject(finding)
      await expect(model.score([good, { inputIds: [3, wrong, 4] }])).rejects.toMatchObject(finding)
      expect(await model.generate([good], { maxNewTokens: 3 })).toEqual(expected)
    })
  } finally {
    await rm(dir, { recursive: true })
  }
})
