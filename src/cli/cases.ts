/** Cases for `heddle run`: what is asked of a model, one JSON object a line. All lines are checked before anything runs. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { usageError } from '../errors.js'

const caseSchema = z.union([
  z.strictObject({ input_ids: z.array(z.int().nonnegative()).nonempty() }),
  z.strictObject({ text: z.string().min(1) }),
])

export type Case = z.infer<typeof caseSchema>

const allowed = 'a line is {"input_ids":[1,2,3]} or {"text":"..."}'

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

/** Names the one thing that is wrong; a union's own message lists both alternatives. */
function reason(value: unknown): string {
  const which = typeof value === 'object' && value !== null && 'input_ids' in value ? 0 : 1
  const issue = caseSchema.options[which]?.safeParse(value).error?.issues[0]
  if (issue === undefined) return 'is not a case'
  const at = issue.path.length === 0 ? '' : ` at ${issue.path.map(String).join('.')}`
  return `${issue.message}${at}`
}

/** Parses the text of a cases file. Blank lines are skipped. @throws usage `run.case` with file and line, `run.empty` without a case */
export function parseCases(text: string, file: string): Case[] {
  const cases = text.split('\n').flatMap((line, index) => (line.trim() === '' ? [] : [parseLine(line, `${file}:${index + 1}`)]))
  if (cases.length === 0) throw usageError('run.empty', `empty batch: ${file} holds no case`, { hint: allowed })
  return cases
}

export async function readCases(file: string): Promise<Case[]> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw usageError('run.case', `cannot read ${file}`, { hint: 'give a file with one case a line', cause })
  })
  return parseCases(text, file)
}
