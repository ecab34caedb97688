/**
 * One-line tests of refusals. A source marks the culprit `«like this»`; the refusal must be exactly there, with its code, message and hint, and
 * must be the only one.
 */
import { expect } from 'vitest'
import { codes, type Diagnostic, openProject, printDiagnostic, readProject, type Specs } from '../../src/frontend/index.js'

const project = openProject(process.cwd())

/** Reads modules given as text: one module, or several by file name. */
export function read(sources: string | Readonly<Record<string, string>>): Specs {
  const files = typeof sources === 'string' ? { 'refused.ts': sources } : sources
  return readProject(project, [], Object.fromEntries(Object.entries(files).map(([name, text]) => [`specs/memory/${name}`, text])))
}

export interface Refusal {
  readonly code: keyof typeof codes
  readonly message: string
  readonly hint: string
}

const isOwn = (diagnostic: Diagnostic): boolean => diagnostic.code.startsWith('HED')

/** Expects one refusal, at the mark. */
export function refuses(sources: string | Readonly<Record<string, string>>, { code, message, hint }: Refusal): void {
  const marked = typeof sources === 'string' ? { 'refused.ts': sources } : sources
  const [file, text] = Object.entries(marked).find(([, source]) => source.includes('«')) ?? ['', '']
  const start = text.indexOf('«')
  const before = text.slice(0, start).split('\n')
  const culprit = text.slice(start + 1, text.indexOf('»'))
  const clean = Object.fromEntries(Object.entries(marked).map(([name, source]) => [name, source.replace(/[«»]/g, '')]))
  const own = read(clean).diagnostics.filter(isOwn)
  expect(own.map(({ frame: _, ...rest }) => rest)).toEqual([
    {
      code: codes[code],
      message,
      file: `specs/memory/${file}`,
      line: before.length,
      column: (before.at(-1)?.length ?? 0) + 1,
      hint,
    },
  ])
  const shown = printDiagnostic(own[0] as Diagnostic).split('\n')
  const [firstLine = ''] = culprit.split('\n')
  const [, source = '', carets = ''] = shown
  expect(source.slice(carets.indexOf('^'), carets.lastIndexOf('^') + 1)).toBe(firstLine)
}

const imports =
  "import { argmax, exp, histogram, idiv, int, max, maximum, op, row, rsqrt, scan, square, sum, tensor, toInt, layout } from 'heddle'"

/** An op over `x: m n` and `ids: m` whose rows run `statements`, preceded by module text. */
export const rowBody = (statements: string, module = ''): string => `${imports}
${module}
export const t = op('t', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), ids: tensor('i32', 'm') },
  outputs: { y: tensor('f32', 'm n') },
  attrs: { eps: 0.5 },
  body: ({ x, ids }, { m: rows, n, eps }) => (m) => {
    ${statements}
  },
})
`

/** The same with one element as its result; the rest of the declarations is used as well. */
export const element = (expression: string, module = ''): string =>
  rowBody(`return { y: row(n, (c) => x(m, c) + ids(m) + eps * rows + (${expression})) }`, module)

/** An op with the given signature fields and body. */
export const signature = (fields: string, module = ''): string => `${imports}
${module}
export const t = op('t', {
${fields}
})
`
