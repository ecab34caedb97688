/** The codes that errors have, with what their messages say, read from the sources: the page of codes is made of it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ts } from 'ts-morph'
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
const isCode = (text: string): boolean => /^[a-z0-9]+\.[a-zA-Z0-9]+$/.test(text)

/** A message with `…` where it names what was found. */
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

/** Codes that are named in `@throws usage \`load.plan\`, \`load.stale\`` and put together elsewhere. */
function stated(text: string): [string, string][] {
  return [...text.matchAll(/@throws ([^@]*?)(?:\*\/|\n \*\s*\n)/g)].flatMap(([, list = '']) => {
    let kind = 'usage'
    return [...list.matchAll(/\b(usage|finding|environment)\b|`([a-z0-9]+\.[a-zA-Z0-9]+)`/g)].flatMap(
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
    for (const [code, kind] of stated(text)) add(code, kind)
  }
  for (const code of Object.values(refusalCodes)) add(code, 'usage')
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')

/** The codes that a page explains. */
export const explained = (page: string): string[] => [...page.matchAll(/<\/a>`([\w.]+)`/g)].map(([, code = '']) => code)

/** A table for each area: code, exit code, and what is said. A page that has all codes and no other stays as it is: messages may change. */
export function errorTables(page: string): string {
  const found = errorCodes()
  if (explained(page).join() === [...found.keys()].join()) return page
  const areas = new Map<string, string[]>()
  for (const [code, { kind, messages, hints }] of found) {
    const area = code.startsWith('HED') ? 'HED' : (code.split('.')[0] ?? '')
    const exit = kind === 'finding' ? 1 : kind === 'usage' ? 2 : 3
    const rows = areas.get(area) ?? []
    rows.push(
      `| <a id="${code.toLowerCase()}"></a>\`${code}\` | ${exit} | ${[...messages].sort().slice(0, 3).map(cell).join('; ') || 'see the message'} | ${[...hints].sort().slice(0, 2).map(cell).join('; ') || 'as the message says'} |`,
    )
    areas.set(area, rows)
  }
  return [...areas]
    .map(([area, rows]) => `### ${area}\n\n| code | exit | says, for instance | repair |\n|---|---|---|---|\n${rows.join('\n')}`)
    .join('\n\n')
}
