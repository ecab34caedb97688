/** Cases for `heddle run` and `heddle calibrate`: inputs of a model, one JSON object per line. All lines are checked before anything runs. */
import { z } from 'zod'
import { usageError } from '../errors.js'
import { readInput } from './input.js'

/** Token ids. Only the first wrong one is reported. */
const ids = z
  .array(z.unknown())
  .nonempty()
  .transform((values, context): number[] => {
    const checked: number[] = []
    for (const [at, id] of values.entries()) {
      if (typeof id === 'number' && Number.isSafeInteger(id) && id >= 0) checked.push(id)
      else {
        context.addIssue({ code: 'custom', message: 'Expected a token id: an integer that is not negative', path: [at] })
        return z.NEVER
      }
    }
    return checked
  })

/** One number per token, or a row of numbers per token. The model checks the lengths. */
const mask = z.union([z.array(z.number()), z.array(z.array(z.number()))], {
  error: 'Expected a 0 or a 1 per token, or a row of them per token',
})

/** Content part of a message; models here read text only. */
const part = z.strictObject({ type: z.literal('text'), text: z.string() })

const caseSchema = z.union([
  z.strictObject({ input_ids: ids, token_type_ids: ids.optional(), attention_mask: mask.optional() }),
  z.strictObject({ text: z.string().min(1), pair: z.string().min(1).optional() }),
  z.strictObject({
    messages: z.array(z.looseObject({ role: z.string().min(1), content: z.union([z.string(), z.array(part)]).nullish() })).min(1),
    tools: z.array(z.looseObject({})).optional(),
    template_vars: z.record(z.string(), z.unknown()).optional(),
  }),
])

export type Case = z.output<typeof caseSchema>

const allowed =
  'a line is {"input_ids":[1,2,3]}, {"input_ids":[1,2,3],"token_type_ids":[0,0,1],"attention_mask":[1,1,0]}, {"text":"..."}, {"text":"...","pair":"..."} or {"messages":[{"role":"user","content":"..."}]}, which may have "tools" and "template_vars"'

function parseLine(line: string, where: string): Case {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw usageError('run.case', `${where} is not JSON: ${line.slice(0, 60)}`, { hint: allowed })
  }
  const parsed = caseSchema.safeParse(value)
  if (!parsed.success) throw usageError('run.case', `${where}: ${reason(value)}`, { hint: allowed })
  return parsed.data
}

/** Describes the first error of the intended alternative; the union's own message lists all alternatives. */
function reason(value: unknown): string {
  const fields = typeof value === 'object' && value !== null ? value : {}
  const which = 'input_ids' in fields ? 0 : 'messages' in fields ? 2 : 1
  const issue = caseSchema.options[which]?.safeParse(value).error?.issues[0]
  if (issue === undefined) return 'is not a case'
  const at = issue.path.length === 0 ? '' : ` at ${issue.path.map(String).join('.')}`
  return `${issue.message}${at}`
}

/** A labelled set, such as the example model's `test-set.json`: only the inputs of its items are used here. */
const setSchema = z.looseObject({ items: z.array(z.unknown()).min(1) })
const itemSchema = z.looseObject({ input_ids: ids, token_type_ids: ids.optional(), attention_mask: mask.optional() })

/** Cases of a text that is one labelled set; undefined for any other text. */
function casesOfSet(text: string, file: string): Case[] | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // One case per line.
    return undefined
  }
  if (typeof value !== 'object' || value === null || !('items' in value)) return undefined
  const parsed = setSchema.safeParse(value)
  const refuse = (issue: z.core.$ZodIssue | undefined, ...place: readonly (string | number)[]) =>
    usageError(
      'run.case',
      `${file}: ${issue?.message ?? 'is not a set'} at ${[...place, ...(issue?.path ?? [])].map(String).join('.')}`,
      {
        hint: 'a set is {"items":[{"input_ids":[1,2,3]},...]}',
      },
    )
  if (!parsed.success) throw refuse(parsed.error.issues[0])
  return parsed.data.items.map((item, i) => {
    const { success, data, error } = itemSchema.safeParse(item)
    if (!success) throw refuse(error.issues[0], 'items', i)
    const { input_ids, token_type_ids, attention_mask } = data
    return { input_ids, token_type_ids, attention_mask }
  })
}

/** Parses a cases file or a labelled set. Blank lines are skipped. @throws usage `run.case` with file and line, `run.empty` without a case */
export function parseCases(text: string, file: string): Case[] {
  const set = casesOfSet(text, file)
  if (set !== undefined) return set
  const cases = text.split('\n').flatMap((line, index) => (line.trim() === '' ? [] : [parseLine(line, `${file}:${index + 1}`)]))
  if (cases.length === 0) throw usageError('run.empty', `empty batch: ${file} contains no case`, { hint: allowed })
  return cases
}

/** Cases of a file, or of the standard input for `-`. @throws errors of `parseCases`; usage `run.case`; the signal's reason */
export async function readCases(file: string, signal?: AbortSignal): Promise<Case[]> {
  const hint = 'give a file with one case per line, or - for the standard input'
  return parseCases(await readInput(file, { code: 'run.case', hint }, signal), file)
}
