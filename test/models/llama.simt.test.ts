/** LLaMA-like models on simt in float32 against HF: tokens, logits, and how likely texts are. */
import { describe, expect, it } from 'vitest'
import { convertTensor } from '../../src/checkpoint/convert.js'
import { openSafetensors } from '../../src/checkpoint/safetensors.js'
import { beforeEnd } from '../../src/models/decoding/beam_trace.js'
import type { Score } from '../../src/models/llama/score.js'
import { decode } from '../../src/runtime/buffer.js'
import { inMemory } from '../../src/runtime/weight.js'
import { logitTolerance } from '../../src/verify/tolerance.js'
import { families, farthest, folderOf, goldenOf, withLlama } from './llama_host.js'
import { withLongrope } from './llama_longrope.js'

describe('families', () => {
  it.each(families)('%s chooses the words of HF, and gives its logits', async (name) => {
    const { cases, text } = goldenOf(name)
    await withLlama(name, {}, async (model) => {
      const short = cases.filter(({ input_ids: { length } }) => length < 200)
      const found = await model.generate(
        short.map(({ input_ids: inputIds }) => ({ inputIds })),
        { maxNewTokens: 24 },
      )
      for (const [i, { greedy_ids: golden }] of short.entries()) {
        const wanted = beforeEnd(golden, model.config.eos)
        const gap = short[i]?.smallest_gap ?? 0
        if (gap >= logitTolerance.separated) expect(found[i]?.ids.slice(0, golden.length)).toEqual(wanted)
      }
      const [score] = await model.score([{ inputIds: text.input_ids }], { places: text.places })
      const distances = text.logits.map((row, i) => farthest(score?.logits[i] ?? [], row))
      expect(Math.max(...distances)).toBeLessThan(logitTolerance.relative)
      if (text.mean_nll !== undefined)
        expect(Math.abs((score?.loss ?? Number.NaN) - text.mean_nll)).toBeLessThan(logitTolerance.relative)
      // Logits of neighbouring positions differ.
      const beside = text.logits.slice(1).map((row, i) => farthest(score?.logits[i] ?? [], row))
      expect(Math.min(...beside)).toBeGreaterThan(logitTolerance.relative)
    })
  })

  it('that were cast as a whole are computed again with rounded inverse frequencies, and not with others', async () => {
    const file = await openSafetensors(`${folderOf('smollm')}/cast.safetensors`)
    const golden = await logitsOf(file)
    const { text } = goldenOf('smollm')
    const worst = async (rotation: 'stored' | 'float32') =>
      withLlama('smollm', { rotation }, async (model) => {
        const [score] = await model.score([{ inputIds: text.input_ids }], { places: text.places })
        return Math.max(...text.places.map((_, i) => farthest(score?.logits[i] ?? [], golden.slice(i * 512, (i + 1) * 512))))
      })
    expect(await worst('stored')).toBeLessThan(logitTolerance.relative)
    expect(await worst('float32')).toBeGreaterThan(logitTolerance.relative)
  })
})

async function logitsOf({ tensors }: Awaited<ReturnType<typeof openSafetensors>>): Promise<number[]> {
  const tensor = tensors.get('logits')
  if (tensor === undefined) throw new Error('no logits')
  return Array.from(decode('f32', (await inMemory(convertTensor('logits', tensor, 'f32'))).data))
}

const farthestLoss = (found: readonly Score[], wanted: readonly Score[]): number =>
  Math.max(
    ...wanted.flatMap(({ losses }, i) =>
      losses.map((loss, j) => Math.abs(loss - (found[i]?.losses[j] ?? Number.POSITIVE_INFINITY))),
    ),
  )

describe('how prompts are read does not matter', () => {
  const lengths = [1, 2, 7, 64, 129, 500]
  const ragged = (ids: readonly number[]) => lengths.map((length) => ({ inputIds: [...ids, ...ids, ...ids].slice(0, length) }))

  it('batches of any lengths give the result of each case alone', async () => {
    const { text } = goldenOf('llama3')
    await withLlama('llama3', {}, async (model) => {
      const cases = ragged(text.input_ids)
      const options = { maxNewTokens: 6 }
      const together = await model.generate(cases, options)
      for (const [i, inputIds] of cases.entries()) expect(await model.generate([inputIds], options)).toEqual([together[i]])
      const turned = await model.generate([...cases].reverse(), { ...options, batch: 3 })
      expect(turned.reverse()).toEqual(together)
      const short = cases.slice(0, 4)
      const many = Array.from({ length: 64 }, (_, i) => short[i % 4] ?? { inputIds: [1] })
      const found = await model.generate(many, { ...options, batch: 64 })
      expect(found).toEqual(many.map((_, i) => together[i % 4]))
    })
  })

  it('chunks of any size give the result of reading at once, also with a shorter window', async () => {
    const { text } = goldenOf('mistral')
    await withLlama('mistral', {}, async (model) => {
      const inputs = [{ inputIds: text.input_ids.slice(0, 110) }, { inputIds: text.input_ids.slice(50, 81) }]
      const whole = await model.score(inputs)
      for (const chunk of [7, 64, 100]) {
        const parts = await model.score(inputs, { chunk })
        expect(farthestLoss(parts, whole)).toBeLessThan(logitTolerance.relative)
      }
      expect(farthestLoss(await model.score(inputs.slice(1), { chunk: 1 }), whole.slice(1))).toBeLessThan(logitTolerance.relative)
      expect(farthestLoss(await model.score([...inputs].reverse()), whole)).toBeGreaterThan(logitTolerance.relative)
    })
  })

  it('a step after n tokens equals reading n + 1', async () => {
    const { text } = goldenOf('qwen2')
    await withLlama('qwen2', {}, async (model) => {
      for (const length of [1, 5, 64]) {
        const prompt = text.input_ids.slice(0, length)
        const [first] = await model.generate([{ inputIds: prompt }], { maxNewTokens: 5 })
        const [score] = await model.score([{ inputIds: [...prompt, ...(first?.ids ?? [])] }], {
          places: [length - 1, length, length + 3],
        })
        const best = score?.logits.map((row) => row.indexOf(Math.max(...row)))
        expect(best).toEqual([first?.ids[0], first?.ids[1], first?.ids[4]])
      }
    })
  })
})

describe('texts that outgrow the original positions of longrope', () => {
  const original = 24
  const { text } = goldenOf('phi3')
  const cases = [10, 20, original, original + 1].map((length) => ({ inputIds: text.input_ids.slice(0, length) }))
  const options = { maxNewTokens: 10 }

  it('are rotated again from there on, in any batch, and no others are', async () => {
    await withLongrope(original, async (model) => {
      const found = await model.generate(cases, options)
      for (const [i, inputs] of cases.entries()) {
        expect(await model.generate([inputs], options)).toEqual([found[i]])
        // Each token is the likeliest after the text, when it is read at once.
        for (const [n, id] of (found[i]?.ids ?? []).entries()) {
          const inputIds = [...inputs.inputIds, ...(found[i]?.ids.slice(0, n) ?? [])]
          const [score] = await model.score([{ inputIds }], { places: [inputIds.length - 1] })
          const [logits = new Float32Array()] = score?.logits ?? []
          expect([i, n, logits.indexOf(Math.max(...logits))]).toEqual([i, n, id])
        }
      }
      const streamed = cases.map((): number[] => [])
      for await (const { index, ids } of model.stream(cases, options)) streamed[index]?.push(...ids)
      expect(streamed).toEqual(found.map(({ ids }) => ids))
      const drawn = { ...options, temperature: 1.5, seed: 5 }
      expect(await model.generate(cases.slice(1, 2), drawn)).toEqual((await model.generate(cases, drawn)).slice(1, 2))
      // Without the change of tables, tokens after it differ and those before it do not.
      const short = await withLongrope(1024, (other) => other.generate(cases, options))
      expect(short.map(({ ids }, i) => ids.every((id, n) => id === found[i]?.ids[n]))).toEqual([true, false, false, false])
    })
  })
})

describe('generation', () => {
  it('streams its text, ends at any end id and at the limit, and works again after it was left early', async () => {
    const { cases } = goldenOf('llama3')
    await withLlama('llama3', {}, async (model) => {
      const inputs = cases.slice(0, 3).map(({ input_ids: inputIds }) => ({ inputIds }))
      const whole = await model.generate(inputs, { maxNewTokens: 19 })
      expect(whole.map(({ finish, ids }) => [finish, ids.length])).toEqual(inputs.map(() => ['limit', 19]))
      const streamed = inputs.map((): number[] => [])
      for await (const { index, ids } of model.stream(inputs, { maxNewTokens: 19, batch: 2 })) streamed[index]?.push(...ids)
      expect(streamed).toEqual(whole.map(({ ids }) => ids))
      for await (const _ of model.stream(inputs, { maxNewTokens: 19 })) break
      expect(await model.generate(inputs, { maxNewTokens: 19 })).toEqual(whole)
    })
  })

  it('samples by the seed of a case, in any batch and at any place in it', async () => {
    const { cases } = goldenOf('smollm')
    await withLlama('smollm', {}, async (model) => {
      const inputs = cases.slice(0, 2).map(({ input_ids: inputIds }) => ({ inputIds }))
      const options = { temperature: 1.5, topP: 0.95, maxNewTokens: 8 }
      const together = await model.generate(inputs, { ...options, seed: [3, 4] })
      const [second] = await model.generate(inputs.slice(1), { ...options, seed: 4 })
      expect(second).toEqual(together[1])
      expect(await model.generate(inputs, { ...options, seed: [5, 6] })).not.toEqual(together)
      expect(await model.generate(inputs, { ...options, topK: 1, maxNewTokens: 8 })).toEqual(
        await model.generate(inputs, { maxNewTokens: 8 }),
      )
    })
  })

  it('penalises words of the prompt too', async () => {
    const { text } = goldenOf('smollm')
    await withLlama('smollm', {}, async (model) => {
      const inputs = [{ inputIds: text.input_ids.slice(0, 20) }]
      const [plain] = await model.generate(inputs, { maxNewTokens: 1 })
      const word = plain?.ids[0] ?? 0
      const seen = [{ inputIds: [word, ...text.input_ids.slice(1, 20)] }]
      const [first] = await model.generate(seen, { maxNewTokens: 1, repetitionPenalty: 50 })
      expect(first?.ids[0]).not.toBe(word)
    })
  })
})

describe('invalid input is refused, and the next call works', () => {
  it('names the value and the allowed ones', async () => {
    await withLlama('smollm', {}, async (model) => {
      const refused = async (run: Promise<unknown>, code: string, message: RegExp) =>
        expect(
          await run.then(
            () => undefined,
            (error: unknown) => error,
          ),
        ).toMatchObject({ code, message: expect.stringMatching(message) })
      const one = { inputIds: [1, 2, 3] }
      await refused(model.generate([]), 'run.batch', /empty/)
      await refused(model.generate([{ inputIds: [] }]), 'run.sequence', /case 0 is empty/)
      await refused(model.generate([{ inputIds: [1, 512] }]), 'run.token', /token id 512 at position 1 is not in \[0, 512\)/)
      await refused(model.generate([{ inputIds: [-1] }]), 'run.token', /-1/)
      await refused(model.generate([{ inputIds: Array.from({ length: 1025 }, () => 1) }]), 'run.sequence', /1025 tokens.*1024/)
      await refused(
        model.generate([one], { maxNewTokens: 1022 }),
        'run.capacity',
        /case 0 has 3 tokens and may get 1022 more.*1024/,
      )
      await refused(model.generate([one], { beams: 65 }), 'generate.beams', /beams is 65, expected an integer from 1 to 64/)
      await refused(model.generate([one], { chunk: 0 }), 'run.chunk', /chunk is 0/)
      await refused(model.generate([one], { capacity: 1025 }), 'run.capacity', /capacity is 1025.*1 to 1024/)
      await refused(model.generate([one], { invariant: 0 }), 'run.invariant', /invariant is 0.*1 to 1024/)
      const fixed = { invariant: 2, capacity: 32, maxNewTokens: 30 }
      await refused(model.generate([one], fixed), 'run.capacity', /3 tokens and may get 30 more.*32 places/)
      await refused(model.generate([one], { topP: 0 }), 'generate.topP', /topP is 0/)
      await refused(model.score([{ inputIds: [1] }]), 'run.sequence', /one token/)
      await refused(model.score([one], { places: [3] }), 'run.place', /no place 3/)
      const aborted = AbortSignal.abort(new Error('enough'))
      await expect(model.generate([one], { signal: aborted })).rejects.toThrow('enough')
      expect(await model.generate([one], { maxNewTokens: 2 })).toHaveLength(1)
    })
  })
})
