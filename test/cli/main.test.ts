import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compact } from '../../src/cli/run.js'
import { heddle, punctuationModel } from './host.js'

let empty: string

beforeAll(async () => {
  empty = await mkdtemp(join(tmpdir(), 'heddle-cli-'))
})

afterAll(() => rm(empty, { recursive: true }))

describe('usage', () => {
  test.each([
    [['frobnicate']],
    [['gen', '--frobnicate']],
    [['build', '--target', 'rocm']],
    [['build', '--jobs', '0']],
    [['run']],
    [['run', punctuationModel, '--dtype', 'f8', '--text', 'x']],
    [['run', punctuationModel, '--batch', 'many', '--text', 'x']],
    [['run', punctuationModel, '--text', 'x', '--cases', 'y']],
  ])('%j is refused', async (argv) => {
    const { exitCode, out, log } = await heddle(argv, empty)
    expect(exitCode).toBe(2)
    expect(out).toBe('')
    expect(log).toMatch(/^error\[cli\.usage\]: .+\n\(see --help\)\n$/)
  })

  test.each([
    [[], '--check is for CUDA sources'],
    [['--target', 'cuda', '--architecture', 'sm_80'], '--check accepts --filter, but not --architecture'],
  ])('a check of texts beside %j is refused', async (options, message) => {
    const { exitCode, log } = await heddle(['build', '--check', ...options], empty)
    expect(exitCode).toBe(2)
    expect(log).toBe(`error[build.check]: ${message}\nhint: heddle build --target cuda --check\n`)
  })

  test.each([
    [['--record'], 'build.check', '--record is for --check'],
    [['--check', '--sample', '24'], 'cli.usage', 'Expected a part from 0 to 23, or all.'],
    [['--check', '--target', 'cuda', '--filter', 'no_such_kernel'], 'build.selection', 'no kernel is selected'],
  ])('a build with %j is refused', async (options, code, message) => {
    const { exitCode, log } = await heddle(['build', ...options], empty)
    expect(exitCode).toBe(2)
    expect(log).toContain(`error[${code}]`)
    expect(log).toContain(message)
  })

  test('help and version are results', async () => {
    expect(await heddle(['--help'])).toMatchObject({ exitCode: 0, out: expect.stringContaining('Usage: heddle'), log: '' })
    expect(await heddle(['--version'])).toMatchObject({ exitCode: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })
})

describe('help', () => {
  test('of heddle states the exit codes, and equals the output of --help', async () => {
    const { exitCode, out, log } = await heddle(['help'])
    expect({ exitCode, log }).toEqual({ exitCode: 0, log: '' })
    expect(out).toContain('Exit codes: 0 done, 1 a check found')
    expect(out).toBe((await heddle(['--help'])).out)
  })
  test('of a verb, and of one below it', async () => {
    expect((await heddle(['help', 'run'])).out).toContain('Usage: heddle run')
    expect((await heddle(['help', 'plan', 'show'])).out).toContain('Usage: heddle plan show')
  })
  test('of no verb names those there are', async () => {
    const { exitCode, log } = await heddle(['help', 'plan', 'paint'])
    expect(exitCode).toBe(2)
    expect(log).toMatch(/^error\[cli\.usage\]: there is no verb "paint"\nhint: known: show, diff, list/)
  })
})

describe('errors under --json', () => {
  test.each([
    ['of a verb', ['run', '/nowhere/model', '--text', 'x', '--json'], 2, 'run.model'],
    ['of the parser', ['gen', '--json', '--frobnicate'], 2, 'cli.usage'],
  ])('are one JSON object, %s', async (_, argv, exit, code) => {
    const { exitCode, out, log } = await heddle(argv, empty)
    expect(exitCode).toBe(exit)
    expect(JSON.parse(out)).toEqual({ error: expect.objectContaining({ code, message: expect.stringMatching(/./) }) })
    expect(log).toContain(`error[${code}]: `)
  })
})

describe('run, before any device is opened', () => {
  test.each([
    ['no input', ['run', punctuationModel], 'run.input'],
    ['an empty text', ['run', punctuationModel, '--text', ' '], 'run.empty'],
    ['a missing model', ['run', '/nowhere/model', '--text', 'x'], 'run.model'],
    ['a missing cases file', ['run', punctuationModel, '--cases', '/nowhere.jsonl'], 'run.case'],
  ])('%s', async (_, argv, code) => {
    const { exitCode, out, log } = await heddle(argv)
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(log).toMatch(new RegExp(`^error\\[${code}\\]: .+\nhint: .+\n$|^error\\[${code}\\]: .+\n$`))
  })

  test('a malformed line is named', async () => {
    const file = join(empty, 'cases.jsonl')
    await writeFile(file, '{"input_ids":[1]}\n{"input_ids":"one"}\n')
    const { exitCode, out, log } = await heddle(['run', punctuationModel, '--cases', file])
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(log).toContain('cases.jsonl:2: ')
  })
})

test('gen in a folder without specs prints a hint', async () => {
  const { exitCode, log } = await heddle(['gen'], empty)
  expect(exitCode).toBe(2)
  expect(log).toMatch(/^error\[[a-z_.]+\]: .+\nhint: .+\n$/)
})

test('doctor --json prints one JSON value, whatever the machine lacks', async () => {
  const { out, log } = await heddle(['doctor', '--json'], empty)
  expect(log).toBe('')
  const report: { checks: { name: string; status: string; detail: string }[] } = JSON.parse(out)
  expect(report.checks.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['node', 'c++', 'cmake', 'nvcc', 'device simt', 'device cuda', 'kernels simt', 'kernels cuda']),
  )
  const find = (name: string) => report.checks.find((check) => check.name === name)
  // Nothing is built in an empty folder, and nothing is missing if a compiler can build each kernel on demand.
  if (find('c++')?.status === 'ok')
    expect(find('kernels simt')).toMatchObject({ status: 'ok', detail: expect.stringContaining('first use') })
})

describe('compact', () => {
  test.each([0.1, 1 / 3, 1e-30, 123456.789, 16777217, 3.4028234e38, 0, -2.5, 1e-45])(
    '%d as float32 is the same float32',
    (value) => {
      const single = Math.fround(value)
      expect(Math.fround(compact(single))).toBe(single)
      expect(String(compact(single)).length).toBeLessThanOrEqual(String(single).length)
    },
  )
})
