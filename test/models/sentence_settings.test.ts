/** Files of sentence-transformers: their settings for embeddings, and unsupported ones. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readSentenceSettings } from '../../src/models/encoder/sentence_settings.js'

let work = ''
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-sentences-'))
})
afterAll(() => rm(work, { recursive: true }))

let folders = 0
async function read(files: Readonly<Record<string, unknown>>) {
  const folder = join(work, String(folders++))
  await mkdir(folder)
  for (const [name, value] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), JSON.stringify(value))
  }
  return readSentenceSettings(folder, 384)
}

const modules = (...types: readonly string[]) =>
  types.map((type, idx) => ({
    ...{ idx, name: String(idx), path: idx === 0 ? '' : `${idx}_${type}`, type: `sentence_transformers.models.${type}` },
  }))
const flags = (...names: readonly string[]) => ({
  word_embedding_dimension: 384,
  ...Object.fromEntries(
    ['cls_token', 'mean_tokens', 'max_tokens', 'mean_sqrt_len_tokens', 'weightedmean_tokens', 'lasttoken'].map((name) => [
      `pooling_mode_${name}`,
      names.includes(name),
    ]),
  ),
  include_prompt: true,
})
const nothing = { lowerCase: false, prompt: '' }

it('are empty if there are none', async () => {
  expect(await read({})).toEqual(nothing)
})

it('set the pooling of tokens, and the normalisation of embeddings', async () => {
  const normalized = { 'modules.json': modules('Transformer', 'Pooling', 'Normalize') }
  const plain = { 'modules.json': modules('Transformer', 'Pooling') }
  for (const [name, pooling] of [
    ['mean_tokens', 'mean'],
    ['cls_token', 'cls'],
    ['lasttoken', 'last'],
  ] as const) {
    expect(await read({ ...normalized, '1_Pooling/config.json': flags(name) })).toEqual({ ...nothing, pooling, normalize: true })
  }
  expect(await read({ ...plain, '1_Pooling/config.json': { pooling_mode: 'cls' } })).toEqual({
    ...{ ...nothing, pooling: 'cls', normalize: false },
  })
  expect(await read({ '1_Pooling/config.json': flags('mean_tokens') })).toEqual({ ...nothing, pooling: 'mean' })
  expect(await read({ 'modules.json': modules('Transformer') })).toEqual({ ...nothing, normalize: false })
})

it('set the maximum length of texts, and their preprocessing', async () => {
  expect(await read({ 'sentence_bert_config.json': { max_seq_length: 256, do_lower_case: true } })).toEqual({
    ...{ ...nothing, most: 256, lowerCase: true },
  })
  const prompts = { prompts: { query: 'query: ', document: '' }, default_prompt_name: 'query' }
  expect(await read({ 'config_sentence_transformers.json': prompts })).toEqual({ ...nothing, prompt: 'query: ' })
  expect(await read({ 'config_sentence_transformers.json': { ...prompts, default_prompt_name: null } })).toEqual(nothing)
})

const refused: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[] = [
  ['another module', { 'modules.json': modules('Transformer', 'Pooling', 'Dense') }, 'the module Dense is not supported'],
  ['another order', { 'modules.json': modules('Transformer', 'Normalize', 'Pooling') }, 'in this order'],
  ['a model elsewhere', { 'modules.json': [{ path: '0_Transformer', type: 'a.Transformer' }] }, 'the model is in 0_Transformer'],
  [
    'a path that leads out',
    { 'modules.json': [modules('Transformer')[0], { path: '../1_Pooling', type: 'a.Pooling' }] },
    'expected a folder beside modules.json',
  ],
  ['another pooling', { '1_Pooling/config.json': flags('max_tokens') }, 'pools by pooling_mode_max_tokens, expected one of mean'],
  ['two poolings', { '1_Pooling/config.json': flags('mean_tokens', 'cls_token') }, ' and pooling_mode_'],
  ['no pooling', { '1_Pooling/config.json': flags() }, 'pools by nothing'],
  ['another width', { '1_Pooling/config.json': { ...flags('cls_token'), word_embedding_dimension: 768 } }, 'is 768'],
  ['a prompt that is not there', { 'config_sentence_transformers.json': { default_prompt_name: 'q' } }, 'there is no prompt q'],
  [
    'a prompt whose tokens do not count',
    {
      '1_Pooling/config.json': { ...flags('mean_tokens'), include_prompt: false },
      'config_sentence_transformers.json': { prompts: { q: 'query: ' }, default_prompt_name: 'q' },
    },
    'cannot be excluded from pooling',
  ],
]

it.each(refused)('are refused for %s', async (_, files, message) => {
  await expect(read(files)).rejects.toMatchObject({
    code: 'embed.settings',
    message: expect.stringContaining(message),
    hint: expect.stringContaining('--no-settings'),
  })
})
