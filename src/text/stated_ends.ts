/**
 * First and last tokens of a text, as stated by `tokenizer_config.json`. Hugging Face's LLaMA and Gemma tokenizers write these by `add_bos_token` and
 * `add_eos_token`, regardless of `tokenizer.json`. Tokenizers of other classes follow `tokenizer.json` alone.
 */
import { z } from 'zod'
import { usageError } from '../errors.js'

const classes = /^(?:Code)?(?:Llama|Gemma)Tokenizer(?:Fast)?$/

const token = z.union([z.string(), z.looseObject({ content: z.string() })]).nullish()

const configSchema = z.looseObject({
  tokenizer_class: z.string().nullish(),
  add_bos_token: z.boolean().nullish(),
  add_eos_token: z.boolean().nullish(),
  bos_token: token,
  eos_token: token,
})
type Config = z.output<typeof configSchema>

const definitionSchema = z.looseObject({
  added_tokens: z.array(z.looseObject({ id: z.int(), content: z.string() })).default([]),
  // Too long to be checked entry by entry.
  model: z.looseObject({ vocab: z.unknown() }).optional(),
})
type Definition = z.output<typeof definitionSchema>

/**
 * A parsed `tokenizer.json` with the first and last tokens that its configuration states; unchanged if it states none.
 * @throws usage `tokenizer.invalid` for a requested token that is not in the file
 */
export function withStatedEnds(definition: object, config: object, path: string): object {
  const stated = configSchema.safeParse(config)
  const file = definitionSchema.safeParse(definition)
  if (!stated.success || !file.success || !classes.test(stated.data.tokenizer_class ?? '')) return definition
  const { add_bos_token: first, add_eos_token: last } = stated.data
  if (first == null && last == null) return definition
  const front = (first ?? true) ? [endOf('bos', stated.data, file.data, path)] : []
  const back = last === true ? [endOf('eos', stated.data, file.data, path)] : []
  const special =
    (type: number) =>
    ({ content }: End) => ({ SpecialToken: { id: content, type_id: type } })
  const around = (text: 'A' | 'B', type: number) => [
    ...front.map(special(type)),
    { Sequence: { id: text, type_id: type } },
    ...back.map(special(type)),
  ]
  return {
    ...definition,
    post_processor: {
      type: 'TemplateProcessing',
      single: around('A', 0),
      pair: [...around('A', 0), ...around('B', 1)],
      special_tokens: Object.fromEntries(
        [...front, ...back].map(({ content, id }) => [content, { id: content, ids: [id], tokens: [content] }]),
      ),
    },
  }
}

interface End {
  readonly content: string
  readonly id: number
}

/** Id of a token: an added one, or one of the vocabulary. */
function idOf({ added_tokens: added, model }: Definition, content: string): number | undefined {
  const found = added.find((each) => each.content === content)
  if (found !== undefined) return found.id
  const vocab: unknown = model?.vocab
  if (Array.isArray(vocab)) {
    const at = vocab.findIndex((entry: unknown) => Array.isArray(entry) && entry[0] === content)
    return at < 0 ? undefined : at
  }
  const id: unknown =
    typeof vocab === 'object' && vocab !== null ? Object.entries(vocab).find(([word]) => word === content)?.[1] : undefined
  return typeof id === 'number' ? id : undefined
}

/** First or last token of a text. @throws usage `tokenizer.invalid` */
function endOf(which: 'bos' | 'eos', config: Config, definition: Definition, path: string): End {
  const stated = config[`${which}_token`]
  const content = typeof stated === 'object' ? stated?.content : stated
  const id = content === undefined ? undefined : idOf(definition, content)
  if (content !== undefined && id !== undefined) return { content, id }
  const found = content === undefined ? 'states none' : `has ${JSON.stringify(content)}, which is not a token of ${path}`
  throw usageError('tokenizer.invalid', `tokenizer_config.json asks for ${which}_token with every text, and ${found}`)
}
