/** Error codes and their messages, read from the sources: input of the page of codes. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ts } from 'ts-morph'
import { codeTexts } from '../../src/codes/index.js'
import type { ErrorCode } from '../../src/errors.js'
import { codes } from '../../src/frontend/diagnostics.js'
import { repository } from '../cli/host.js'

interface Said {
  readonly kind: string
  readonly messages: Set<string>
  readonly hints: Set<string>
}

const refusalCodes: Readonly<Record<string, string>> = codes
const classes: Readonly<Record<string, string>> = {
  usageError: 'usage',
  findingError: 'finding',
  environmentError: 'environment',
}
const isCode = (text: string): text is ErrorCode => Object.hasOwn(codeTexts, text)

/** A message with `…` in place of its values. */
function textOf(node: ts.Node | undefined): string | undefined {
  if (node === undefined) return undefined
  if (ts.isStringLiteralLike(node)) return node.text
  if (!ts.isTemplateExpression(node)) return undefined
  return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('')
}

/** The hint among an error's details. */
function hintOf(details: ts.Node | undefined): string | undefined {
  if (details === undefined || !ts.isObjectLiteralExpression(details)) return undefined
  const hint = details.properties.find((each) => ts.isPropertyAssignment(each) && each.name.getText() === 'hint')
  return hint !== undefined && ts.isPropertyAssignment(hint) ? textOf(hint.initializer) : undefined
}

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

/** @returns the sources' codes, sorted, each with its class and messages */
export function errorCodes(): Map<string, Said> {
  const found = new Map<string, Said>()
  const add = (code: string, kind: string, message?: string, hint?: string): void => {
    const said = found.get(code) ?? { kind, messages: new Set(), hints: new Set() }
    if (message !== undefined) said.messages.add(message)
    if (hint !== undefined) said.hints.add(hint)
    found.set(code, said)
  }
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
      const [first, second, third, fourth] = node.arguments
      const kind = classes[node.expression.text]
      const code = textOf(first)
      if (kind !== undefined && code !== undefined && isCode(code)) add(code, kind, textOf(second), hintOf(third))
      const refusal = node.expression.text === 'reject' && code !== undefined ? refusalCodes[code] : undefined
      if (refusal !== undefined) add(refusal, 'usage', textOf(third), textOf(fourth))
    }
    ts.forEachChild(node, visit)
  }
  const source = join(repository, 'src')
  for (const entry of readdirSync(source, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!entry.endsWith('.ts')) continue
    const text = readFileSync(join(source, entry), 'utf8')
    if (!/Error\(|reject\(|@throws/.test(text)) continue
    visit(ts.createSourceFile(entry, text, ts.ScriptTarget.ES2023, true))
    for (const [code, kind] of stated(text)) if (isCode(code)) add(code, kind)
  }
  for (const code of [...Object.values(refusalCodes), ...Object.keys(codeTexts)]) add(code, 'usage')
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')

/** Areas that several parts of the runtime use as the prefix of a code. */
const sharedAreas: ReadonlySet<string> = new Set(['tensor', 'call', 'load', 'run', 'device'])

/** Codes with a text that no source throws: neither the code itself appears in one, nor, for codes assembled from an area and a word, the word. */
export function unthrown(known: readonly string[] = Object.keys(codeTexts)): string[] {
  const source = join(repository, 'src')
  const texts = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((entry) => entry.endsWith('.ts') && !entry.startsWith('codes/'))
    .map((entry) => readFileSync(join(source, entry), 'utf8'))
    .join('\n')
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

/** The cells of a code's row in a page, after the code itself. */
function cellsOf(page: string, code: string): readonly string[] {
  const row = page.split('\n').find((line) => line.startsWith(`| <a id="${code.toLowerCase()}"></a>`))
  return (
    row
      ?.slice(2, -2)
      .split(/ (?<!\\)\| /)
      .slice(1) ?? []
  )
}

/** One table per area: meaning, usual cause, repair and messages of each code. Messages already on a page stay: they may change. */
export function errorTables(page: string): string {
  const areas = new Map<string, string[]>()
  for (const [code, { kind, messages, hints }] of errorCodes()) {
    const isFrontEnd = !isCode(code)
    const area = isFrontEnd ? 'HED' : (code.split('.')[0] ?? '')
    const exit = String(kind === 'finding' ? 1 : kind === 'usage' ? 2 : 3)
    const now = cellsOf(page, code)
    const says = [...messages].sort().slice(0, 3).map(cell).join('; ') || 'see the message'
    const repair = [...hints].sort().slice(0, 2).map(cell).join('; ') || 'as the message says'
    const cells = isFrontEnd
      ? now.length === 3
        ? now
        : [exit, says, repair]
      : [exit, ...codeTexts[code].split(' | ').map(cell), now.length === 5 ? (now[4] ?? says) : says]
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
