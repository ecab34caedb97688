/**
 * The number-words model on simt against the results of HF and FasterTransformer's rule in float32: greedy, beams by both rules, texts, every plan
 * for decoders, and batches of any size.
 */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { formatSafetensors, readSafetensors } from '../../src/checkpoint/safetensors.js'
import type { GenerateOptions, GenerationResult, Seq2seq } from '../../src/models/seq2seq/seq2seq_pipeline.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { hypothesisTolerance } from '../../src/verify/tolerance.js'
import { inTurn, modelTypes } from '../turns.js'
import { numberWords, withSeq2seq } from './seq2seq_fixtures.js'
import { openSimtKernels } from './simt.js'

interface Golden {
  readonly input_ids: readonly number[]
  readonly greedy: readonly number[]
  readonly greedy_text: string
  readonly beam4: readonly (readonly number[])[]
  readonly beam4_cum_log_prob: readonly number[]
  readonly hf_beam4: readonly number[]
}

let opened: Awaited<ReturnType<typeof openSimtKernels>>
let goldens: readonly Golden[]
beforeAll(async () => {
  opened = await openSimtKernels()
  const file: { cases: Golden[] } = JSON.parse(await readFile(join(numberWords, 'golden.json'), 'utf8'))
  goldens = file.cases
})

const beams = { beams: 4, returned: 4 } satisfies GenerateOptions
const hf = { beams: 4, rule: 'hf' } satisfies GenerateOptions

const run = (model: Seq2seq, chosen: readonly Golden[], options: GenerateOptions = {}) =>
  model.generate(
    chosen.map(({ input_ids }) => ({ inputIds: input_ids })),
    { batch: 32, ...options },
  )

/** Positions of cases whose best ids are not the wanted ones. */
const wrongIds = (results: readonly Pick<GenerationResult, 'ids'>[], wanted: readonly (readonly number[])[]): number[] =>
  wanted.flatMap((ids, i) => (JSON.stringify(results[i]?.ids) === JSON.stringify(ids) ? [] : [i]))

/** True if the golden order of beams is more than rounding. */
const isClear = ({ beam4_cum_log_prob: scores }: Golden): boolean =>
  scores.every((score, i) => i === 0 || (scores[i - 1] ?? 0) - score > hypothesisTolerance.separated)

/** Positions of cases whose beams differ from the golden ones in ids, in order or in their scores. */
const wrongBeams = (results: readonly Pick<GenerationResult, 'beams'>[], chosen: readonly Golden[]): number[] =>
  chosen.flatMap(({ beam4, beam4_cum_log_prob: scores }, i) => {
    const found = results[i]?.beams ?? []
    const close = scores.every(
      (score, j) => Math.abs((found[j]?.cumLogProb ?? Number.NaN) - score) <= hypothesisTolerance.absolute,
    )
    return close && JSON.stringify(found.map(({ ids }) => ids)) === JSON.stringify(beam4) ? [] : [i]
  })

describe('200 cases', () => {
  it('match the golden greedy ids and texts', async () => {
    await withSeq2seq(opened, numberWords, { plan: 'unfused' }, async (model) => {
      const results = await run(model, goldens)
      expect(results).toHaveLength(200)
      const wanted = goldens.map(({ greedy }) => greedy)
      expect(wrongIds(results, wanted)).toEqual([])
      const tokenizer = await loadTokenizer(numberWords)
      expect(results.map(({ ids }) => tokenizer.decode(ids))).toEqual(goldens.map(({ greedy_text }) => greedy_text))
    })
  })

  it('match the golden beams by both rules, a rotating third of them', async () => {
    const clear = goldens.filter(isClear)
    expect(clear.length).toBeGreaterThan(190)
    await withSeq2seq(opened, numberWords, { plan: 'ft-v2.1' }, async (model) => {
      const chosen = inTurn(clear)
      expect(wrongBeams(await run(model, chosen, beams), chosen)).toEqual([])
    })
    await withSeq2seq(opened, numberWords, { plan: 'unfused' }, async (model) => {
      const best = inTurn(goldens)
      expect(
        wrongIds(
          await run(model, best, hf),
          best.map(({ hf_beam4 }) => hf_beam4),
        ),
      ).toEqual([])
    })
  })
})

describe('plans', () => {
  const held = [
    ['unfused', 'f32', 24],
    ['best-decoder', 'f32', 8],
    ['best-decoder', 'f16', 8],
    ['best-decoder', 'bf16', 8],
  ] as const
  it.each(held.filter(([, dtype]) => modelTypes().includes(dtype)))(
    '%s in %s agrees on the first %i cases',
    async (plan, dtype, count) => {
      const chosen = goldens.slice(0, count)
      expect(chosen.every(isClear)).toBe(true)
      await withSeq2seq(opened, numberWords, { plan, dtype }, async (model) => {
        const greedy = chosen.map((golden) => golden.greedy)
        expect(wrongIds(await run(model, chosen), greedy)).toEqual([])
        const best = chosen.map(({ hf_beam4 }) => hf_beam4)
        if (dtype !== 'f32') return expect(wrongIds(await run(model, chosen, { beams: 4 }), best)).toEqual([])
        expect(wrongBeams(await run(model, chosen, beams), chosen)).toEqual([])
        expect(wrongIds(await run(model, chosen, hf), best)).toEqual([])
      })
    },
  )
})

describe('a batch of ragged sources', () => {
  /** Results of all cases together, and of two of them each alone. */
  async function apart(plan: string, count: number) {
    const chosen = goldens.slice(0, count)
    expect(new Set(chosen.map(({ input_ids }) => input_ids.length)).size).toBeGreaterThan(3)
    const shortest = chosen.reduce(
      (least, { input_ids }, i) => (input_ids.length < (chosen[least]?.input_ids.length ?? 0) ? i : least),
      0,
    )
    return withSeq2seq(opened, numberWords, { plan }, async (model) => {
      const together = await run(model, chosen, beams)
      const pairs: { readonly together: GenerationResult | undefined; readonly alone: GenerationResult | undefined }[] = []
      for (const i of [shortest, count - 1]) {
        const [alone] = await run(model, chosen.slice(i, i + 1), { ...beams, batch: 1 })
        pairs.push({ together: together[i], alone })
      }
      return pairs
    })
  }

  // Generated float32 matmuls divide k by their number of rows, so that the last bits depend on the batch; library matmuls do not.
  const tests = [
    [
      'the same bits under ft-v2.1',
      async () => {
        for (const { together, alone } of await apart('ft-v2.1', 32)) expect(alone).toEqual(together)
      },
    ],
    [
      'the same beams under best-decoder, with scores within the tolerance',
      async () => {
        for (const { together, alone } of await apart('best-decoder', 8)) {
          const beamsOf = (result: GenerationResult | undefined) => result?.beams ?? []
          expect(beamsOf(alone).map(({ ids }) => ids)).toEqual(beamsOf(together).map(({ ids }) => ids))
          expect(beamsOf(alone)).toHaveLength(4)
          for (const [i, { cumLogProb }] of beamsOf(alone).entries()) {
            const distance = Math.abs(cumLogProb - (beamsOf(together)[i]?.cumLogProb ?? Number.NaN))
            expect(distance).toBeLessThanOrEqual(hypothesisTolerance.absolute)
          }
        }
      },
    ],
  ] as const
  it.each(inTurn(tests))('gives each what it gives alone: %s', (_, test) => test())
})

describe('a mistake is found', () => {
  it('in two beams that change places, a score that is off and an id that is another', () => {
    const [golden] = goldens
    if (golden === undefined) throw new Error('no golden cases')
    const right = golden.beam4.map((ids, j) => {
      const score = golden.beam4_cum_log_prob[j] ?? 0
      return { ids, cumLogProb: score, score }
    })
    const [first, second, ...rest] = right
    if (first === undefined || second === undefined) throw new Error('no beams')
    const found = (hypotheses: typeof right) => wrongBeams([{ beams: hypotheses }], [golden])
    expect(found(right)).toEqual([])
    expect(found([second, first, ...rest])).toEqual([0])
    expect(found([{ ...first, ids: second.ids }, second, ...rest])).toEqual([0])
    const off = first.cumLogProb + 2 * hypothesisTolerance.absolute
    expect(found([{ ...first, cumLogProb: off }, second, ...rest])).toEqual([0])
    expect(wrongIds([{ ids: second.ids }], [first.ids])).toEqual([0])
  })

  it('in a weight whose results overflow float32: it is reported, and the next run is right', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'heddle-overflow-'))
    try {
      await cp(numberWords, folder, { recursive: true })
      const path = join(folder, 'model.safetensors')
      const { tensors } = await readSafetensors(path)
      const name = 'model.encoder.layers.0.fc1.weight'
      const tensor = tensors.get(name)
      if (tensor === undefined) throw new Error(`no tensor ${name}`)
      const large = encode('f32', new Float32Array(tensor.data.byteLength / 4).fill(3e38))
      await writeFile(path, formatSafetensors(new Map([...tensors, [name, { ...tensor, data: large }]])))
      const chosen = goldens.slice(0, 2)
      await withSeq2seq(opened, folder, {}, async (model) => {
        await expect(run(model, chosen, {})).rejects.toMatchObject({ code: 'run.value', exitCode: 1 })
      })
      await withSeq2seq(opened, numberWords, {}, async (model) => {
        expect((await run(model, chosen, {})).map(({ ids }) => ids)).toEqual(chosen.map(({ greedy }) => greedy))
      })
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('in a weight that is a tenth too large', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'heddle-perturbed-'))
    try {
      await cp(numberWords, folder, { recursive: true })
      const path = join(folder, 'model.safetensors')
      const { tensors } = await readSafetensors(path)
      const name = 'model.decoder.layers.2.encoder_attn.out_proj.weight'
      const tensor = tensors.get(name)
      if (tensor === undefined) throw new Error(`no tensor ${name}`)
      const larger = encode(
        'f32',
        Float32Array.from(decode('f32', tensor.data), (value) => 1.1 * value),
      )
      await writeFile(path, formatSafetensors(new Map([...tensors, [name, { ...tensor, data: larger }]])))
      const chosen = goldens.slice(0, 8)
      await withSeq2seq(opened, folder, { plan: 'ft-v2.1' }, async (model) => {
        expect(wrongBeams(await run(model, chosen, beams), chosen).length).toBeGreaterThan(4)
      })
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
