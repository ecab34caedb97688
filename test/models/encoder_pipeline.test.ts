import { rm } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { type EncoderOptions, type EncoderResult, loadEncoder } from '../../src/models/encoder/encoder_pipeline.js'
import { restorePunctuation } from '../../src/models/encoder/punctuation.js'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { referenceDevice, referenceLibrary, referenceManifest } from '../runtime/reference_device.js'
import { exampleModel, golden, goldenSentences, interpretBert, type RandomModel, randomBert, writeModel } from './fixtures.js'

const manifest = referenceManifest()

const load = async (dir: string, options: Partial<EncoderOptions> = {}) => {
  const { device, log } = referenceDevice(manifest)
  const encoder = await loadEncoder(dir, { device, library: referenceLibrary(manifest), manifest, ...options })
  return { encoder, log }
}

async function withModel<T>(model: RandomModel, use: (dir: string) => Promise<T>): Promise<T> {
  const dir = await writeModel(model)
  try {
    return await use(dir)
  } finally {
    await rm(dir, { recursive: true })
  }
}

const rowsOf = (result: EncoderResult | undefined): number[] =>
  (result?.kind === 'encoder' ? result.states : result?.kind === 'token-classifier' ? result.logits : []).flatMap((row) => [
    ...row,
  ])

const cases = (sequences: readonly (readonly number[])[]) => sequences.map((inputIds) => ({ inputIds }))
const bound = tolerance({ dtype: 'f32', class: 'model', length: 4 })

describe('the example model through the runtime', () => {
  it('matches the golden logits and labels, batched with unequal lengths', async () => {
    const { encoder, log } = await load(exampleModel)
    const all = (await goldenSentences()).map((sentence, row) => ({ sentence, row }))
    const chosen = all.sort((a, b) => a.sentence.length - b.sentence.length).slice(0, 2)
    expect(chosen[0]?.sentence.length).not.toBe(chosen[1]?.sentence.length)
    const results = await encoder.run(cases(chosen.map(({ sentence }) => sentence)))
    const logits = (await golden())('logits')
    const [, seq = 0, classes = 0] = logits.shape
    for (const [i, { sentence, row }] of chosen.entries()) {
      const result = results[i]
      const wanted = Array.from(logits.data).slice(row * seq * classes, (row * seq + sentence.length) * classes)
      expect(compare(rowsOf(result), wanted, bound).passed).toBe(true)
      const largest = sentence.map((_, s) => {
        const scores = wanted.slice(s * classes, (s + 1) * classes)
        return scores.indexOf(Math.max(...scores))
      })
      expect(result).toMatchObject({ kind: 'token-classifier', labelIds: largest })
    }
    const built = await encoder.program({ batch: 2, seq: 40 })
    expect(built.memory.arenaBytes).toBeLessThan(built.steps.reduce((sum, step) => sum + step.bytes, 0))
    encoder.release()
    await Promise.resolve()
    await new Promise(setImmediate)
    expect(log.live).toBe(0)
  })

  it('restores the punctuation of a verse', async () => {
    const { encoder } = await load(exampleModel)
    const tokenizer = await loadTokenizer(exampleModel)
    const text = await restorePunctuation(encoder, tokenizer, 'Jesus wept. And he said unto them  Why are ye troubled')
    expect(text.replaceAll(/[,.;:?]/g, '')).toBe('Jesus wept And he said unto them Why are ye troubled')
    expect(text).toMatch(/[.?]$/)
    expect(await restorePunctuation(encoder, tokenizer, ' . ')).toBe('')
  })

  it('counts one kernel a primitive', async () => {
    const { encoder } = await load(exampleModel)
    const { steps } = await encoder.program({ batch: 1, seq: 8 })
    const layer = steps.filter(({ label }) => label.startsWith('layer0/'))
    expect(layer.filter(({ kind }) => kind === 'matmul').map(({ label }) => label)).toEqual(
      ['query', 'key', 'value', 'scores', 'context', 'projection', 'fc1', 'fc2'].map((name) => `layer0/${name}`),
    )
    expect(layer.filter(({ kind }) => kind === 'kernel')).toHaveLength(18)
  })
})

describe('random models against the interpreter', () => {
  it.each([
    { hidden_size: 130, num_attention_heads: 5, hidden_act: 'relu' },
    { hidden_size: 128, num_attention_heads: 1, hidden_act: 'gelu_new' },
    { hidden_size: 192, num_attention_heads: 3, num_hidden_layers: 2 },
  ])('%o', async (changes) => {
    const model = randomBert(changes, true)
    await withModel(model, async (dir) => {
      const { encoder } = await load(dir, { seqStep: 1 })
      const sequences = [
        [3, 1, 4, 1, 5],
        [9, 2],
        [6, 5, 3, 49],
      ]
      const results = await encoder.run(cases(sequences), { batch: 3 })
      const values = await interpretBert(model.config, { tensors: model.tensors }, sequences)
      const states = Array.from(values.get('states')?.data ?? [])
      for (const [b, { length }] of sequences.entries()) {
        const wanted = states.slice(b * 5 * model.config.hidden, (b * 5 + length) * model.config.hidden)
        expect(compare(rowsOf(results[b]), wanted, bound).passed).toBe(true)
      }
      const pooled = results.flatMap((result) => (result.kind === 'encoder' ? [...(result.pooled ?? [])] : []))
      expect(compare(pooled, values.get('pooled')?.data ?? [], bound).passed).toBe(true)
    })
  })

  it('does not depend on padding or on the rest of the batch', async () => {
    await withModel(randomBert({}), async (dir) => {
      const { encoder } = await load(dir)
      const [alone] = await encoder.run(cases([[7, 8, 9]]))
      const together = await encoder.run(
        cases([
          [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
          [7, 8, 9],
        ]),
      )
      expect(rowsOf(together[1])).toEqual(rowsOf(alone))
    })
  })
})

describe('what run refuses', () => {
  const model = randomBert({ max_position_embeddings: 6 })
  it.each([
    ['no cases', [], {}, 'run.batch', 'empty'],
    ['an empty sequence', [[1], []], {}, 'run.sequence', 'case 1 is empty'],
    ['a long sequence', [[1, 1, 1, 1, 1, 1, 1]], {}, 'run.sequence', 'case 0 has 7 tokens, the model has 6 positions'],
    ['a token id beyond the vocabulary', [[1, 50]], {}, 'run.token', 'case 0: token id 50 at position 1 is not in [0, 50)'],
    ['a negative token id', [[-1]], {}, 'run.token', 'token id -1'],
    ['a fractional token id', [[1.5]], {}, 'run.token', 'token id 1.5'],
    ['a batch of zero', [[1]], { batch: 0 }, 'run.batch', 'batch is 0'],
  ])('%s', async (_, sequences, options, code, message) => {
    await withModel(model, async (dir) => {
      const { encoder, log } = await load(dir)
      await expect(encoder.run(cases(sequences), options)).rejects.toMatchObject({
        code,
        exitCode: 2,
        message: expect.stringContaining(message),
      })
      expect(log.runs).toBe(0)
      await expect(encoder.run(cases([[1, 2]]))).resolves.toHaveLength(1)
    })
  })

  it('an unknown plan or dtype, before anything is read', async () => {
    await expect(load('/nowhere', { plan: 'fused' })).rejects.toMatchObject({ code: 'plan.unknown' })
    await expect(load('/nowhere', { dtype: 'f64' as 'f32' })).rejects.toMatchObject({ code: 'run.dtype' })
    await expect(load('/nowhere')).rejects.toMatchObject({ code: 'config.read' })
  })
})

describe('programs of an encoder', () => {
  it('are built once per shape, and the least recently used one is evicted', async () => {
    await withModel(randomBert({}), async (dir) => {
      const { encoder, log } = await load(dir, { maxPrograms: 2 })
      const first = await encoder.program({ batch: 1, seq: 8 })
      await encoder.program({ batch: 1, seq: 16 })
      expect(await encoder.program({ batch: 1, seq: 8 })).toBe(first)
      await encoder.program({ batch: 1, seq: 24 })
      await new Promise(setImmediate)
      // The weights and two arenas.
      expect(log.live).toBe(3)
      expect(await encoder.program({ batch: 1, seq: 8 })).toBe(first)
    })
  })

  it('stop when the signal aborts, and run again afterwards', async () => {
    await withModel(randomBert({}), async (dir) => {
      const { encoder, log } = await load(dir)
      await expect(encoder.run(cases([[1]]), { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
      const controller = new AbortController()
      const progress: number[] = []
      const run = encoder.run(cases([[1], [2], [3]]), {
        batch: 1,
        signal: controller.signal,
        progress: (done) => {
          progress.push(done)
          controller.abort()
        },
      })
      await expect(run).rejects.toMatchObject({ name: 'AbortError' })
      expect(progress).toEqual([1])
      expect(log.runs).toBe(1)
      await expect(encoder.run(cases([[1]]))).resolves.toHaveLength(1)
    })
  })

  it('separate concurrent runs', async () => {
    await withModel(randomBert({}), async (dir) => {
      const { encoder } = await load(dir)
      const one = await encoder.run(cases([[1, 2]]))
      const two = await encoder.run(cases([[3, 4]]))
      const both = await Promise.all([encoder.run(cases([[1, 2]])), encoder.run(cases([[3, 4]]))])
      expect(both).toEqual([one, two])
      expect(one).not.toEqual(two)
    })
  })
})
