/** The rule of oxlint and ESLint: the compiler's errors at their places, by the interface that both have. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import plugin, { type RuleContext } from '../../src/editor/lint.js'
import { linkPackage } from '../verify/own_project.js'

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-lint-'))
  await writeFile(join(root, 'package.json'), '{ "name": "own", "type": "module" }\n')
  await mkdir(join(root, 'specs'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

const op = (value: string): string => `import { op, tensor } from 'heddle'
import { half } from './half.js'
export const scaled = op('scaled', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'n') },
  body: ({ x }) => (c) => ({ y: half(${value}) }),
})
`

type Problem = Parameters<RuleContext['report']>[0]

/** Problems of a text that an editor has for a file. */
function problemsIn(text: string, file = 'specs/a.ts'): readonly Problem[] {
  const problems: Problem[] = []
  const context = { filename: join(root, file), sourceCode: { text }, report: (problem: Problem) => void problems.push(problem) }
  plugin.rules.specs.create(context).Program?.()
  return problems
}

const half = (body: string) => writeFile(join(root, 'specs/half.ts'), `export const half = (a: number): number => ${body}\n`)

it('reports refusals in place, and none for a right op, for each text of a file', async () => {
  await linkPackage(root)
  await half('a / 2')
  expect(problemsIn(op('x(c)'))).toEqual([])
  const message = "HED102: Math.abs has no counterpart on a device\nhint: import { abs } from 'heddle' and call abs(...)"
  const loc = { start: { line: 7, column: 37 }, end: { line: 7, column: 45 } }
  expect(problemsIn(op('Math.abs(x(c))'))).toEqual([{ message, loc }])
  expect(problemsIn(op('x(c)'))).toEqual([])
})

it('follows changes of a module that the file imports', async () => {
  await linkPackage(root)
  await half('a / 2')
  expect(problemsIn(op('x(c)'))).toEqual([])
  await writeFile(join(root, 'specs/half.ts'), 'export const quarter = (a: number): number => a / 4\n')
  expect(problemsIn(op('x(c)'))).toHaveLength(1)
  await half('a / 4')
  expect(problemsIn(op('x(c)'))).toEqual([])
})

it('passes over other files, and says if it cannot check one', () => {
  expect(problemsIn('export const a: string = 1\n')).toEqual([])
  expect(problemsIn(op('x(c)')).map(({ message }) => message)).toEqual([
    `frontend.heddle: "heddle" cannot be imported from ${root}\nhint: install it there: npm install heddle`,
  ])
})
