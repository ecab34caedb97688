/** Messages of errors are found in sources: directly, through helpers, and with values as `…`. */
import { expect, it } from 'vitest'
import { examples } from './error_codes.js'
import { thrown } from './thrown.js'

const messages = (source: string, more = ''): readonly string[] =>
  thrown([
    ['a.ts', source],
    ['b.ts', more],
  ]).map(({ code, message, hint }) => `${code}: ${message}${hint === '' ? '' : ` (${hint})`}`)

it('has a hole for each value, and both sides of a condition', () => {
  expect(messages("throw usageError('a.size', 'size ' + size() + ': expected ' + (small ? 'one' : 'at most ' + most))")).toEqual([
    'a.size: size …: expected one',
    'a.size: size …: expected at most …',
  ])
})

it('follows a helper to each of its calls, also in another file', () => {
  const helper =
    "export const refuse = (name: string, why: string) => { throw usageError('a.' + name, name + ' ' + why, { hint: 'stop' }) }"
  expect(messages(`${helper}\nrefuse('b', 'is missing')`)).toEqual(['a.b: b is missing (stop)'])
  const calls = "import { refuse } from './a.js'\nconst check = (name: string) => refuse(name, 'is ' + x)\ncheck('c')\ncheck('d')"
  expect(messages(helper, calls)).toEqual(['a.c: c is … (stop)', 'a.d: d is … (stop)'])
})

it('does not follow a function of the same name in a file that is not imported', () => {
  const twin = "const refuse = (name: string) => name\nrefuse('c')"
  const helper = "const refuse = (name: string) => usageError('a.' + name, 'is missing')\nrefuse('b')"
  expect(messages(helper, twin)).toEqual(['a.b: is missing'])
})

it('reads fields of objects, constants and defaults', () => {
  const source =
    "const fail = ({ code }: Site, what = 'it is late') => usageError(code, what)\nconst site = { code: 'a.late' }\nfail(site)"
  expect(messages(source)).toEqual(['a.late: it is late'])
})

it('reads templates', () => {
  expect(messages(`throw usageError('a.size', \`size \${size}: too large\`)`)).toEqual(['a.size: size …: too large'])
})

it('leaves the area open where only the running program knows it', () => {
  expect(messages("class A { fail() { throw usageError(this.area + '.shape', 'no shape is given') } }")).toEqual([
    '….shape: no shape is given',
  ])
})

it('shows frequent messages first, and those of a few words last', () => {
  expect(
    examples(
      new Map([
        ['… is …', 3],
        ['it is late\nby an hour', 1],
        ['it is early', 2],
      ]),
      2,
    ),
  ).toEqual(['it is early', 'it is late'])
})
