/** Paths as Windows has them, by its path module: no native module is loaded, and no Windows is needed. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, win32 } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { depfileText } from '../../src/cli/depfile.js'
import { patternsOf } from '../../src/frontend/project/project.js'
import { SourceMaps } from '../../src/frontend/run/source_maps.js'
import { isWithin, nameIn, slashed } from '../../src/path_names.js'

describe('a path on Windows', () => {
  it('is a name with slashes, from whichever of both forms', () => {
    expect(slashed('C:\\a\\b.ts', win32)).toBe('C:/a/b.ts')
    for (const file of ['C:\\p\\specs\\a.ts', 'C:/p/specs/a.ts', 'c:/P/specs/a.ts'])
      expect(nameIn('C:\\p', file, win32)).toBe('specs/a.ts')
  })

  it.each([
    ['C:\\p\\specs\\a.ts', true],
    ['C:/p/specs/a.ts', true],
    ['C:\\p', true],
    ['C:\\p\\..a.ts', true],
    ['C:\\pq\\a.ts', false],
    ['C:\\', false],
    ['D:\\p\\a.ts', false],
  ])('%s is within C:\\p: %s', (file, expected) => expect(isWithin('C:\\p', file, win32)).toBe(expected))

  it('is escaped in no rule of make', () => {
    const text = depfileText('C:\\p\\generated\\manifest.json', ['C:\\p\\my specs\\a.ts'], win32)
    expect(text).toBe('C:/p/generated/manifest.json: \\\n  C:/p/my\\ specs/a.ts\n\nC:/p/my\\ specs/a.ts:\n')
  })

  it('is a glob without escapes', () => {
    const isDir = (path: string): boolean => !path.endsWith('.ts')
    expect(patternsOf('C:\\p', ['specs', 'b\\c.ts'], win32, isDir)).toEqual(['C:/p/specs/**/*.ts', 'C:/p/b/c.ts'])
  })
})

describe('elsewhere, a backslash is part of a name', () => {
  it('in names, globs and rules', () => {
    expect(nameIn('/p', '/p/a\\b.ts', posix)).toBe('a\\b.ts')
    expect(isWithin('/p', '/p/..\\b', posix)).toBe(true)
    expect(depfileText('m', ['/a\\b'], posix)).toContain('  /a\\\\b')
  })
})

describe('a stack on Windows', () => {
  // Line 1 of the module is line 3 of the source.
  const map = JSON.stringify({ version: 3, sources: ['a.ts'], names: [], mappings: 'AAEA' })
  const maps = new SourceMaps('C:\\p', win32)
  maps.add('C:\\p\\.heddle\\specs-1\\a.js', 'C:\\p\\specs\\a.ts', map)
  const inSpecs = { file: 'specs/a.ts', line: 3, column: 1 }

  it.each([
    ['a URL', 'Error: no\n    at f (file:///C:/p/.heddle/specs-1/a.js:1:1)'],
    ['a path', 'Error: no\n    at f (C:\\p\\.heddle\\specs-1\\a.js:1:1)'],
    ['the head of a syntax error', 'file:///C:/p/.heddle/specs-1/a.js:1'],
  ])('has the place of the author, from %s', (_, stack) => expect(maps.placeOf(stack)).toEqual(inSpecs))

  it('has none from modules of Node, or from a message', () =>
    expect(maps.placeOf('Error: read C:\\p\\x\n    at node:internal/modules:3:4', () => true)).toBeUndefined())

  it('names a module on another drive by its path', () =>
    expect(maps.placeOf('at f (file:///D:/lib/x.js:7:2)', () => true)).toEqual({ file: 'D:\\lib\\x.js', line: 7, column: 2 }))
})

/** Ways to compare or split paths that fail on Windows, each with what to write instead. */
const faults: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\.startsWith\(['"`]\.\.(\/|\\\\)?['"`]\)/, 'isWithin'],
  [/\.replaceAll\('\\\\', '\/'\)/, 'slashed or nameIn'],
  [/\.split\(sep\)/, 'slashed'],
  [/startsWith\([^)\n]*\+ sep\)|\$\{sep\}`\)/, 'isWithin'],
  [/\bimport\((?:(?:path|file)[,)]|join\()/, 'pathToFileURL'],
]

/** Names of faults in a source. */
const faultsIn = (source: string): readonly string[] =>
  faults.flatMap(([pattern, instead]) => (pattern.test(source) ? [instead] : []))

describe('sources', () => {
  const root = fileURLToPath(new URL('../../src', import.meta.url))
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && name !== 'path_names.ts' && !name.startsWith('docs'),
  )

  it('take paths apart by path_names.ts', () => {
    const found = files.flatMap((name) =>
      faultsIn(readFileSync(join(root, name), 'utf8')).map((instead) => `${name}: ${instead}`),
    )
    expect(found).toEqual([])
  })

  it.each([
    ["relative(root, file).startsWith('..')", 'isWithin'],
    ["relative(root, file).replaceAll('\\\\', '/')", 'slashed or nameIn'],
    ["path.split(sep)[0] === '..'", 'slashed'],
    ['file.startsWith(folder + sep)', 'isWithin'],
    ['await import(path)', 'pathToFileURL'],
  ])('%s is found', (source, instead) => expect(faultsIn(source)).toEqual([instead]))
})
