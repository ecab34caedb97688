/** `bench decoding` on simt with small numbers: a memory of another width than the decoder, and diverse beams. */
import { expect, test } from 'vitest'
import { decoderOnly } from '../../src/bench/decoding.js'
import { type BenchDecodingOptions, benchDecoding } from '../../src/cli/index.js'
import { seq2seqShapes } from '../../src/models/seq2seq/seq2seq_weights.js'
import { heddle, repository } from '../cli/host.js'

const sizes = { layers: 1, heads: 3, headDim: 4, vocab: 17, steps: 2, memory: 5 }

test.each([
  [undefined, 12, 3],
  [12, 12, 3],
  [6, 6, 3],
  [10, 10, 1],
])('a memory of width %s has keys and values of %i elements', (memoryHidden, width, heads) => {
  const config = decoderOnly({ ...sizes, memoryHidden })
  expect([config.encoder.hidden, config.encoder.heads, config.decoder.hidden]).toEqual([width, heads, 12])
  const crossed = Object.entries(seq2seqShapes(config)).filter(([name]) => /encoder_attn\.[kv]_proj\.weight$/.test(name))
  expect(crossed.map(([, shape]) => shape)).toEqual([
    [12, width],
    [12, width],
  ])
})

const context = { root: repository, signal: new AbortController().signal, verbose: false, out: () => {}, log: () => {} }
const small: Partial<BenchDecodingOptions> = {
  ...{ layers: 1, heads: 3, headSize: 4, vocab: 17, steps: 2, memory: 5, repeats: 1, device: 'simt', dtype: 'f32' },
}

test('both options run under unfused and best-decoder', async () => {
  const { results } = await benchDecoding(
    { ...small, plans: ['unfused', 'best-decoder'], memoryHidden: 10, beam: 2, diversityRate: -0.5 },
    context,
  )
  expect(results.map(({ plan, width, steps }) => [plan, width, steps])).toEqual([
    ['unfused', 2, 2],
    ['best-decoder', 2, 2],
  ])
  for (const { step } of results) expect(step.median).toBeGreaterThan(0)
})

test.each([
  ['a rate for words that are drawn', ['--diversity-rate', '-0.5', '--top-k', '3'], /error\[generate\.\w+\]/],
  ['a rate that is not a number', ['--beam', '2', '--diversity-rate', 'some'], /Expected a number/],
  ['a width of nothing', ['--memory-hidden', '0'], /Expected a positive integer/],
  ['a framework without such a memory', ['--memory-hidden', '10', '--peer', 'torch'], /error\[bench\.peer\]: --memory-hidden/],
  ['a framework without such a rate', ['--beam', '2', '--diversity-rate', '1', '--peer', 'torch'], /error\[bench\.peer\]/],
])('%s is refused', async (_, words, said) => {
  const { exitCode, log } = await heddle(['bench', 'decoding', '--device', 'simt', '--layers', '1', '--vocab', '17', ...words])
  expect(exitCode).toBe(2)
  expect(log).toMatch(said)
})
