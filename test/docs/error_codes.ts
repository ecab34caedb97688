/** Error codes and their messages, read from the sources: input of the page of codes. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeTexts } from '../../src/codes/index.js'
import type { ErrorCode } from '../../src/errors.js'
import { codes } from '../../src/frontend/diagnostics/reject.js'
import { repository } from '../cli/host.js'
import { hole } from './symbolic.js'
import { isVague, thrown } from './thrown.js'

interface Found {
  readonly kind: string
  /** Numbers of the statements that have a message or a hint. */
  readonly messages: Map<string, number>
  readonly hints: Map<string, number>
}

const refusalCodes: Readonly<Record<string, string>> = codes
const isCode = (text: string): text is ErrorCode => Object.hasOwn(codeTexts, text)

const source = join(repository, 'src')
const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((entry) => entry.endsWith('.ts'))
  .sort()
  .map((entry) => [entry, readFileSync(join(source, entry), 'utf8')] as const)

/** Codes that are named in `@throws usage \`load.plan\`, \`load.stale\`` and assembled elsewhere. */
function stated(text: string): [string, string][] {
  return [...text.matchAll(/@throws ([^@]*?)(?:\*\/|\n \*\s*\n)/g)].flatMap(([, list = '']) => {
    let kind = 'usage'
    return [...list.matchAll(/\b(usage|finding|environment)\b|`([a-z0-9]+\.\w+)`/g)].flatMap(
      ([, named, code]): [string, string][] => {
        kind = named ?? kind
        return code === undefined ? [] : [[code, kind]]
      },
    )
  })
}

const count = (counts: Map<string, number>, text: string): void => {
  if (text !== '') counts.set(text, (counts.get(text) ?? 0) + 1)
}

/** The sources' codes, sorted, each with its class and messages. */
function codesFound(): ReadonlyMap<string, Found> {
  const found = new Map<string, Found>()
  const add = (code: string, kind: string, message = '', hint = ''): void => {
    const entry = found.get(code) ?? { kind, messages: new Map<string, number>(), hints: new Map<string, number>() }
    count(entry.messages, message)
    count(entry.hints, hint)
    found.set(code, entry)
  }
  const errors = thrown(files)
  for (const { kind, code, message, hint } of errors) {
    const known = refusalCodes[code] ?? code
    if (isCode(known) || known !== code) add(known, kind, message, hint)
  }
  for (const [, text] of files) for (const [code, kind] of stated(text)) if (isCode(code)) add(code, kind)
  for (const code of [...Object.values(refusalCodes), ...Object.keys(codeTexts)]) add(code, 'usage')
  // Helpers of several areas know theirs at run time only.
  for (const { kind, code, message, hint } of errors)
    for (const area of code.startsWith(`${hole}.`) ? sharedAreas : []) {
      const own = code.replace(hole, area)
      if (isCode(own)) add(own, kind, message, hint)
    }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
}

let memo: ReadonlyMap<string, Found> | undefined
/** The sources' codes, sorted, each with its class and messages. */
export const errorCodes = (): ReadonlyMap<string, Found> => {
  memo ??= codesFound()
  return memo
}

/** First lines of the texts with the most statements. Texts of few words come last. */
export function examples(texts: ReadonlyMap<string, number>, most: number): readonly string[] {
  const sorted = [...texts]
    .map(([text, times]) => ({ line: text.split('\n')[0] ?? '', times }))
    .filter(({ line }) => /[A-Za-z]{2}/.test(line))
    .sort((a, b) => Number(isVague(a.line)) - Number(isVague(b.line)) || b.times - a.times || (a.line < b.line ? -1 : 1))
    .map(({ line }) => line)
  return [...new Set(sorted)].slice(0, most)
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')

/** Areas that several parts of the runtime use as the prefix of a code. */
const sharedAreas: ReadonlySet<string> = new Set(['tensor', 'call', 'load', 'run', 'device'])

/** Codes with a text that no source throws: neither the code itself appears in one, nor, for codes assembled from an area and a word, the word. */
export function unthrown(known: readonly string[] = Object.keys(codeTexts)): string[] {
  const texts = files.flatMap(([file, text]) => (file.startsWith('codes/') ? [] : [text])).join('\n')
  const words = new Set([...texts.matchAll(/'([\w.]+)'/g)].map(([, word = '']) => word))
  const areas = new Set([...texts.matchAll(/`(\w+)\.\$/g)].map(([, area = '']) => area))
  return known.filter((code) => {
    const [area = '', word = ''] = code.split('.')
    const isMade = areas.has(area) || sharedAreas.has(area)
    return !words.has(code) && !(isMade && (words.has(word) || texts.includes(`.${word}\``)))
  })
}

/** The codes that a page explains. */
export const explained = (page: string): string[] => [...page.matchAll(/<\/a>`([\w.]+)`/g)].map(([, code = '']) => code)

/** One table per area: meaning, usual cause, repair and messages of each code. */
export function errorTables(): string {
  const areas = new Map<string, string[]>()
  for (const [code, { kind, messages, hints }] of errorCodes()) {
    const area = isCode(code) ? (code.split('.')[0] ?? '') : 'HED'
    const exit = String(kind === 'finding' ? 1 : kind === 'usage' ? 2 : 3)
    const says = examples(messages, 3).map(cell).join('; ') || 'see the message'
    const repair = examples(hints, 2).map(cell).join('; ') || 'as the message says'
    const cells = isCode(code) ? [exit, ...codeTexts[code].split(' | ').map(cell), says] : [exit, says, repair]
    const rows = areas.get(area) ?? []
    rows.push(`| <a id="${code.toLowerCase()}"></a>\`${code}\` | ${cells.join(' | ')} |`)
    areas.set(area, rows)
  }
  const heads = (area: string): string =>
    area === 'HED'
      ? '| code | exit | says, for instance | repair |\n|---|---|---|---|'
      : '| code | exit | means | usual cause | what to do | says, for instance |\n|---|---|---|---|---|---|'
  return [...areas].map(([area, rows]) => `### ${area}\n\n${heads(area)}\n${rows.join('\n')}`).join('\n\n')
}
