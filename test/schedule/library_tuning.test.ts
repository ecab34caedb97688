/** The part of a tuning file that is about matmul libraries, and its way into the manifest. */
import { expect, test } from 'vitest'
import { generate } from '../../src/emit/index.js'
import { mergeMatmuls, type TunedMatmul } from '../../src/schedule/tuning/library.js'
import { formatTuning, parseTuning } from '../../src/schedule/tuning/tuning.js'
import { refusal } from '../refusal.js'

const entry = (more: Partial<TunedMatmul> = {}): TunedMatmul => ({
  device: 'a GPU',
  library: 130100,
  matmul: 'f16 x f16 -> f16, 1 x 128 x 768 x 768, a 0 768 1, b 0 768 1, out 0 768 1',
  algorithm: '0a'.repeat(64),
  config: 'id 66, tile 20',
  measured: { first: 5.1, algorithm: 4.2 },
  ...more,
})

test('matmuls of a tuning file are sorted, byte-reproducible, and absent if there are none', () => {
  const [later, earlier] = [entry({ matmul: 'z' }), entry({ matmul: 'b' })]
  const text = formatTuning([], [later, earlier])
  const read = parseTuning(text, 'tuning.json')
  expect(read.matmuls).toEqual([earlier, later])
  expect(formatTuning(read.entries, read.matmuls)).toBe(text)
  expect(formatTuning([])).not.toContain('matmuls')
  expect(parseTuning(formatTuning([]), 'tuning.json').matmuls).toBeUndefined()
})

test.each([
  ['an algorithm of another length', { algorithm: '0a'.repeat(63) }, 'tuning.schema', /matmuls\[0\]\.algorithm/],
  ['an algorithm that is no number', { algorithm: 'xy'.repeat(64) }, 'tuning.schema', /matmuls\[0\]\.algorithm/],
  ['a time that is none', { measured: { first: 0, algorithm: 1 } }, 'tuning.schema', /matmuls\[0\]\.measured\.first/],
])('%s is refused', async (_, more, code, message) => {
  const text = JSON.stringify({ version: 1, entries: [], matmuls: [{ ...entry(), ...more }] })
  expect(await refusal(() => parseTuning(text, 'tuning.json'))).toMatchObject({ code, message: expect.stringMatching(message) })
})

test('the same matmul twice is refused; of another version of the library it is another', async () => {
  const text = (...matmuls: readonly TunedMatmul[]) => JSON.stringify({ version: 1, entries: [], matmuls })
  expect(await refusal(() => parseTuning(text(entry(), entry()), 'tuning.json'))).toMatchObject({ code: 'tuning.twice' })
  expect(parseTuning(text(entry(), entry({ library: 130000 })), 'tuning.json').matmuls).toHaveLength(2)
})

test('a new measurement replaces the old entry, or removes it', () => {
  const other = entry({ device: 'another GPU' })
  const fresh = entry({ algorithm: '0b'.repeat(64) })
  expect(mergeMatmuls([entry(), other], [fresh], [fresh])).toEqual([other, fresh])
  expect(mergeMatmuls([entry(), other], [], [entry()])).toEqual([other])
})

test('gen copies them to the manifest, which has none without them', () => {
  const manifest = (matmuls?: readonly TunedMatmul[]) =>
    JSON.parse(generate([], {}, [], { file: 'tuning.json', entries: [], matmuls }).get('manifest.json') ?? '')
  expect(manifest([entry()]).matmuls).toEqual([entry()])
  expect(manifest()).not.toHaveProperty('matmuls')
})
