/** The house style of CONTRIBUTING, as far as a program can check it, over all sentences of the repository. Part of `npm run check`. */
import { describe, expect, it } from 'vitest'
import { exceptions } from './exceptions.js'
import { subjectFault } from './rules.js'
import { fileFindings, scan, subjectsSince } from './scan.js'

/** The last commit with a subject in the old style. */
const since = '6f1679f3'

describe('the house style', () => {
  it('applies to each folder, except for listed findings', () => {
    const found = scan()
    const over = [...found].flatMap(([folder, lines]) => {
      const most = exceptions[folder] ?? 0
      return lines.length <= most ? [] : [`${folder}: expected at most ${most} findings, got ${lines.length}`, ...lines]
    })
    expect(over).toEqual([])
    const lower = Object.entries(exceptions).flatMap(([folder, most]) => {
      const count = found.get(folder)?.length ?? 0
      return most < 2 * count + 4 ? [] : [`${folder}: ${count}`]
    })
    expect(lower, 'numbers to lower in exceptions.ts').toEqual([])
  })
  it('applies to subjects of commits', () => {
    expect(subjectsSince(since).flatMap((subject) => subjectFault(subject) ?? [])).toEqual([])
  })
})

describe('a planted sentence is found', () => {
  it.each([
    ['a.ts', '/** What is read early. */\nconst a = 1', 1, 'got "What"'],
    ['a.ts', 'const a = 1\n// Whether it is\n// so.', 2, 'got "Whether"'],
    ['a.ts', 'const a = {\n  /** Sizes that are held against those of a call. */\n  b: 1,\n}', 2, 'checked against'],
    ['a.cuh', 'int a; // One thread a row.', 1, 'one thread per'],
    ['a.md', 'Text.\n\nWhoever reads it.', 3, 'a caller'],
    ['a.hbs', '/* Where the rows\n * lie one behind the other. */', 1, 'concatenated'],
  ])('%s %s', (file, text, line, message) => {
    const found = fileFindings(file, text)
    expect(found.map((each) => each.line)).toContain(line)
    expect(found.map((each) => each.message).join('\n')).toContain(message)
  })
  it('and one in plain words is not', () => {
    expect(fileFindings('a.ts', '/** Prefetched loads of a row, one team per row. */\nconst a = "What is it"')).toEqual([])
    expect(fileFindings('a.md', 'What Triton has')).toEqual([])
    expect(fileFindings('a.cpp', 'auto url = "http://x"; // Offsets in bytes.')).toEqual([])
  })
  it.each(['What was asked is held', 'Adds a test', 'A test of rows', 'add a test', `Add ${'x'.repeat(70)}`])(
    'subject: %s',
    (subject) => {
      expect(subjectFault(subject)).toMatch(/^expected .*, got /)
    },
  )
  it.each(['Add a test', 'Write, run and time it', 'Pass sizes on', 'Embed texts'])('subject that is right: %s', (subject) => {
    expect(subjectFault(subject)).toBeUndefined()
  })
})
