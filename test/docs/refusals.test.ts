/** The page of codes: every HED code has an entry, whose examples behave as the page states. */
import { expect, it } from 'vitest'
import { explain } from '../../src/cli/explain.js'
import { codeTexts } from '../../src/codes/index.js'
import { codes, openProject, readProject } from '../../src/frontend/index.js'
import { rowBody } from '../frontend/refuse.js'
import { errorCodes, explained, unthrown } from './error_codes.js'
import { textOf } from './pages.js'

const page = textOf('src/docs/reference/errors.md')
const entries = [...page.matchAll(/^### (HED\d+)\n\n(.*)\n([\s\S]*?)(?=^##)/gm)].map(
  ([, code = '', meaning = '', rest = '']) => ({
    code,
    meaning,
    refused: /```ts refused\n([\s\S]*?)\n```/.exec(rest)?.[1],
    accepted: /```ts accepted\n([\s\S]*?)\n```/.exec(rest)?.[1],
  }),
)

const names = 'argsort, exp, idiv, layout, monoid, op, row, sum, tensor, toFloat'

/** An example as a separate module, whose declarations have names that no other example has. */
function moduleOf(text: string, own: string): string {
  const unique = (module: string): string =>
    module.replace(
      /\b(op|layout)\('(\w+)'/g,
      (_, kind: string, name: string) => `${kind}('${name}${name === 'layerScale' ? '' : own}'`,
    )
  if (/\b(op|layout)\('/.test(text)) return unique(`import { ${names} } from 'heddle'\n${text}\n`)
  const [front, body] = text.includes('\n---\n') ? text.split('\n---\n') : ['', text]
  const module = rowBody(body ?? '', front).replace(/^import .*\n/, `import { ${names} } from 'heddle'\n`)
  // Removes the parts of the signature that an example does not use.
  return unique(
    module
      .replace(", ids: tensor('i32', 'm')", '')
      .replace('  attrs: { eps: 0.5 },\n', '')
      .replace('{ x, ids }, { m: rows, n, eps }', '{ x }, { n }'),
  )
}

const project = openProject(process.cwd())

/** The HED codes that each example is refused with. */
function refusals(which: 'refused' | 'accepted'): ReadonlyMap<string, readonly string[]> {
  const files = entries.flatMap(({ code, [which]: text }) =>
    text === undefined ? [] : [[`specs/memory/${code}.ts`, moduleOf(text, `_${which}_${code.toLowerCase()}`)] as const],
  )
  const { diagnostics } = readProject(project, [], Object.fromEntries(files))
  return new Map(
    files.map(([file]) => [
      file.slice('specs/memory/'.length, -'.ts'.length),
      [...new Set(diagnostics.flatMap((each) => (each.file === file && each.code.startsWith('HED') ? [each.code] : [])))],
    ]),
  )
}

it('has an entry for every code of the front end, and no other', () => {
  expect(entries.map(({ code }) => code).sort()).toEqual(Object.values(codes).sort())
  for (const { meaning } of entries) expect(meaning.length).toBeGreaterThan(20)
})

it('has a line for every code that is thrown, and no other', () => {
  expect(explained(page)).toEqual([...errorCodes().keys()])
})

it('has a meaning, a cause and a repair for every other code, and none for an unused code', () => {
  expect(unthrown()).toEqual([])
  expect(unthrown(['plan.node', 'plan.weather'])).toEqual(['plan.weather'])
  const parts = Object.entries(codeTexts).flatMap(([code, text]) => text.split(' | ').map((part) => [code, part] as const))
  expect(parts).toHaveLength(3 * Object.keys(codeTexts).length)
  for (const [code, part] of parts) expect(part, code).toMatch(/^[A-Za-z0-9$].{7,}\.$/)
  const meanings = Object.values(codeTexts).map((text) => text.split(' | ')[0])
  expect(new Set(meanings).size).toBeGreaterThan(0.95 * meanings.length)
})

it('has examples that are refused with their own code, and no other', () => {
  const found = refusals('refused')
  for (const [code, given] of found) expect(given, code).toEqual([code])
  expect(found.size).toBe(entries.length - 1)
})

it('shows repairs that are accepted', () => {
  for (const [code, given] of refusals('accepted')) expect(given, code).toEqual([])
})

it('equals the output of heddle explain', async () => {
  const text = await explain('hed103')
  expect(text).toContain('HED103\n\nA statement that a body cannot contain.')
  expect(text).toContain('refused:\n\nlet total = 0')
  expect(text).toContain('accepted:\n\nconst total = sum')
  expect(await explain('plan.node')).toMatch(
    /^plan\.node\n\nmeans: A plan names a node .*\nusual cause: .*\nwhat to do: .*\nexit code: 2\nsays, for instance: .+\n$/,
  )
  await expect(explain('plan.nod')).rejects.toThrow(expect.objectContaining({ code: 'explain.code' }))
})
