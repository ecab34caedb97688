/** Tokens that a configuration adds around a text, by the class of its tokenizer. */
import { expect, it } from 'vitest'
import { withStatedEnds } from '../../src/text/stated_ends.js'
import { tokenizerOf } from '../../src/text/tokenizer.js'
import { refusal } from '../refusal.js'

const token = (id: number, content: string) => ({ id, content, special: true })
const first = { SpecialToken: { id: '<s>', type_id: 0 } }
const definition = (processor: object | null) => ({
  added_tokens: [token(0, '<s>'), token(1, '</s>')],
  normalizer: null,
  pre_tokenizer: { type: 'Whitespace' },
  post_processor: processor,
  decoder: null,
  model: { type: 'WordLevel', vocab: { '<s>': 0, '</s>': 1, a: 2, b: 3, '<unk>': 4 }, unk_token: '<unk>' },
})
const writing = {
  type: 'TemplateProcessing',
  single: [first, { Sequence: { id: 'A', type_id: 0 } }],
  pair: [first, { Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
  special_tokens: { '<s>': { id: '<s>', ids: [0], tokens: ['<s>'] } },
}
const llama = { tokenizer_class: 'LlamaTokenizerFast', bos_token: { content: '<s>' }, eos_token: '</s>' }
const ids = (processor: object | null, config: object, pair?: string) =>
  tokenizerOf(definition(processor), config, 'tokenizer.json').encode('a b', { pair }).ids

it('are written by LLaMA tokenizers as configured, whatever the file states', () => {
  expect(ids(writing, llama)).toEqual([0, 2, 3])
  expect(ids(writing, { ...llama, add_bos_token: false })).toEqual([2, 3])
  expect(ids(null, { ...llama, add_bos_token: true })).toEqual([0, 2, 3])
  expect(ids(null, { ...llama, add_eos_token: true })).toEqual([0, 2, 3, 1])
  expect(ids(null, { ...llama, add_bos_token: true, add_eos_token: true }, 'b')).toEqual([0, 2, 3, 1, 0, 3, 1])
})

it('may be words of the model', () => {
  const bare = (vocab: unknown) => ({ added_tokens: [], model: { vocab } })
  const named = (vocab: unknown) => withStatedEnds(bare(vocab), { ...llama, add_bos_token: true }, 'tokenizer.json')
  const written = { post_processor: { special_tokens: { '<s>': { ids: [1] } } } }
  expect(named({ a: 0, '<s>': 1 })).toMatchObject(written)
  expect(
    named([
      ['a', -1],
      ['<s>', 0],
    ]),
  ).toMatchObject(written)
})

it('are those of the file in tokenizers of other classes', () => {
  const other = { ...llama, tokenizer_class: 'PreTrainedTokenizerFast' }
  expect(ids(writing, { ...other, add_bos_token: false })).toEqual([0, 2, 3])
  expect(ids(null, { ...other, add_bos_token: true })).toEqual([2, 3])
})

it('that the file does not have are refused', () => {
  const missing = refusal(() =>
    withStatedEnds(definition(null), { ...llama, bos_token: '<x>', add_bos_token: true }, 'tokenizer.json'),
  )
  expect(missing).toMatchObject({
    code: 'tokenizer.invalid',
    message: 'tokenizer_config.json asks for bos_token with every text, and has "<x>", which is not a token of tokenizer.json',
  })
  expect(
    refusal(() => withStatedEnds(definition(null), { ...llama, eos_token: null, add_eos_token: true }, 'x')).message,
  ).toContain('states none')
})
