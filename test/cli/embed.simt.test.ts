/** Embeddings of texts, from Node and from the command line, of the shipped encoder and of folders with settings. */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openPipeline, type Pipeline } from '../../src/cli/index.js'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { numberWords } from '../models/seq2seq_fixtures.js'
import { heddle, punctuationModel } from './host.js'

let [work, folder] = ['', '']
let bert: Pipeline
let own: Pipeline
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-embed-'))
  folder = join(work, 'model')
  await cp(punctuationModel, folder, { recursive: true })
  await mkdir(join(folder, '1_Pooling'))
  const modules = ['Transformer', 'Pooling', 'Normalize'].map((type, i) => ({
    path: i === 0 ? '' : `${i}_${type}`,
    type: `a.${type}`,
  }))
  await writeFile(join(folder, 'modules.json'), JSON.stringify(modules))
  await writeFile(join(folder, '1_Pooling/config.json'), JSON.stringify({ pooling_mode_cls_token: true }))
  await writeFile(join(folder, 'sentence_bert_config.json'), JSON.stringify({ max_seq_length: 6 }))
  bert = await openPipeline(punctuationModel, { device: 'simt' })
  own = await openPipeline(folder, { device: 'simt' })
})
afterAll(async () => {
  bert.close()
  own.close()
  await rm(work, { recursive: true })
})

const text = 'and God said Let there be light'
const long = `${text} `.repeat(40)

describe('embeddings of texts', () => {
  it('are those of their ids, of one or of several', async () => {
    const { ids } = (await loadTokenizer(punctuationModel)).encode(text)
    const row = await bert.embed(text)
    expect(row).toHaveLength(bert.encoder.config.hidden)
    expect(await bert.embed([text, { inputIds: ids }])).toEqual([row, row])
    expect((await bert.encoder.embed([{ inputIds: ids }], { pooling: 'mean' }))[0]).toEqual(row)
    expect(await bert.embed(text, { pooling: 'last' })).not.toEqual(row)
  })
  it("are pooled, normalised and truncated by the folder's settings, unless an option overrides them", async () => {
    const { ids } = (await loadTokenizer(folder)).encode(text, { truncate: { how: 'longest_first', most: 6 } })
    expect(ids).toHaveLength(6)
    const stated = await own.embed(text)
    expect([stated]).toEqual(await bert.encoder.embed([{ inputIds: ids }], { pooling: 'cls', normalize: true }))
    expect(await own.embed(long)).toHaveLength(stated.length)
    expect(await own.embed(text, { settings: false })).toEqual(await bert.embed(text))
    const [plain] = await bert.encoder.embed([{ inputIds: ids }], { pooling: 'last' })
    expect(await own.embed(text, { pooling: 'last', normalize: false })).toEqual(plain)
  })
  it('of texts that are too long are refused, or truncated on request', async () => {
    await expect(bert.embed(long)).rejects.toMatchObject({
      code: 'run.sequence',
      message: expect.stringMatching(/^text 0 has \d+ tokens, at most 128/),
    })
    expect(await bert.embed([long], { truncate: true })).toHaveLength(1)
    await expect(own.embed(text, { truncate: false })).rejects.toMatchObject({ code: 'run.sequence' })
  })
  it('refuse invalid options and inputs', async () => {
    const embed = bert.embed as (input: unknown, options?: object) => Promise<unknown>
    await expect(embed(text, { pool: 'mean' })).rejects.toMatchObject({ code: 'run.option', message: 'embed has no option pool' })
    await expect(embed(7)).rejects.toMatchObject({ code: 'run.case' })
    await expect(embed([])).rejects.toMatchObject({ code: 'run.batch' })
  })
})

describe('heddle run --pooling', () => {
  const run = (model: string, ...argv: readonly string[]) => heddle(['run', model, '--device', 'simt', ...argv])

  it('prints a line for each case', async () => {
    const file = join(work, 'cases.jsonl')
    await writeFile(file, `${JSON.stringify({ text })}\n{"input_ids":[2,9,3]}\n`)
    const { exitCode, out } = await run(punctuationModel, '--cases', file, '--pooling', 'mean', '--normalize')
    expect(exitCode).toBe(0)
    const rows = out
      .trim()
      .split('\n')
      .map((line): number[] => JSON.parse(line).embedding)
    const wanted = await bert.embed([text, { inputIds: [2, 9, 3] }], { normalize: true })
    expect(rows.map((row) => Float32Array.from(row))).toEqual(wanted)
    const stated = await run(folder, '--text', text, '--pooling', 'stated', '--json')
    expect(Float32Array.from(JSON.parse(stated.out).embedding)).toEqual(await own.embed(text))
    const left = await run(folder, '--text', text, '--pooling', 'mean', '--no-settings')
    expect(Float32Array.from(JSON.parse(left.out).embedding)).toEqual(await bert.embed(text))
  })
  it.each([
    [punctuationModel, ['--text', 'a', '--normalize'], '--normalize needs --pooling'],
    [
      punctuationModel,
      ['--text', 'a', '--pair', 'b', '--pooling', 'cls'],
      'case 0: expected one text to embed, got a pair of texts',
    ],
    [punctuationModel, ['--text', 'a', '--pooling', 'max'], 'Allowed choices are mean, cls, last, stated'],
    [numberWords, ['--text', '12', '--pooling', 'cls'], '--pooling applies to encoders, and this model generates text'],
  ] as const)('refuses an invalid embedding: %s %j', async (model, argv, message) => {
    const { exitCode, out, log } = await run(model, ...argv)
    expect([exitCode, out, log]).toEqual([2, '', expect.stringContaining(message)])
  })
})
