/** Verbs as functions of `heddle/commands`: each verb has one, and missing options have the defaults of the command line. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as commands from '../../src/cli/index.js'
import { heddle, repository } from './host.js'

let work: string
/** A folder without specs, where names are those that ship. */
let apart: commands.CliContext
beforeAll(async () => {
  await mkdir(join(repository, '.heddle'), { recursive: true })
  work = await mkdtemp(join(repository, '.heddle', 'functions-'))
  apart = { ...context, root: work }
})
afterAll(() => rm(work, { recursive: true }))

const context: commands.CliContext = {
  root: repository,
  signal: new AbortController().signal,
  verbose: false,
  out: () => expect.unreachable('a function prints no results'),
  log: () => {},
}

/** Functions that are not called as their verb is. */
const otherwise: Readonly<Record<string, readonly string[]>> = {
  plan: ['showPlan', 'diffPlans', 'listPlans'],
  export: ['exportProgram'],
  bench: ['bench', 'benchEncoder', 'benchDecoding', 'benchLlama'],
  tune: ['tune', 'tuneLibrary'],
}

test('every verb that the reference has is a function', async () => {
  const page = await readFile(join(repository, 'src/docs/reference/verbs.md'), 'utf8')
  const titled = [...page.matchAll(/^## (\w+)/gm)].map(([, name = '']) => name)
  const verbs = [...new Set([...titled, 'explain', 'export'])]
  expect(verbs.length).toBeGreaterThan(15)
  const names = verbs.flatMap((verb) => otherwise[verb] ?? [verb])
  const missing = names.filter((name) => typeof Reflect.get(commands, name) !== 'function')
  expect(missing).toEqual([])
  // The page lists those with other names.
  for (const name of Object.values(otherwise).flat()) expect(page, name).toContain(`\`${name}\``)
})

test('bench times a kernel as the command line does', async () => {
  const { kind, dtype, sizes } = await commands.bench('softmax', { shape: [{ m: 2, n: 8 }], repeats: 2, device: 'simt' }, apart)
  expect({ kind, dtype }).toEqual({ kind: 'kernel', dtype: 'f32' })
  expect(sizes[0]?.[0]).toMatchObject({ dims: { m: 2, n: 8 }, milliseconds: { samples: 2 } })
  await expect(commands.bench('softmux', { device: 'simt' }, apart)).rejects.toMatchObject({
    code: 'bench.unknown',
    hint: expect.stringMatching(/^nearest of \d+: softmax/),
  })
})

test('benchEncoder, benchDecoding and benchLlama have the usual defaults', async () => {
  const small = { repeats: 1, device: 'simt', dtype: 'f32' } as const
  const config = 'test/data/models/kjv-punct-bert'
  const encoder = await commands.benchEncoder({ ...small, config, batch: [1], length: [4], plans: ['unfused'] }, context)
  expect(encoder.results.map(({ plan, batch, seq }) => [plan, batch, seq])).toEqual([['unfused', 1, 4]])
  const sizes = { layers: 1, heads: 2, headSize: 4, vocab: 11, steps: 2, memory: 3, plans: ['unfused'] }
  const decoding = await commands.benchDecoding({ ...small, ...sizes }, context)
  expect(decoding.results.map(({ batch, steps }) => [batch, steps])).toEqual([[1, 2]])
  await expect(commands.benchLlama('none', small, context)).rejects.toMatchObject({ code: 'bench.config' })
})

test('listPlans returns the data of `plan list`', async () => {
  const plans = await commands.listPlans({}, apart)
  expect(JSON.parse((await heddle(['plan', 'list', '--json'], work)).out)).toEqual(plans)
  expect(plans.find(({ name }) => name === 'ft-v1')).toMatchObject({ own: false, text: 'written groups' })
})

test('exportProgram writes the same files as the verb', async () => {
  const out = join(work, 'softmax')
  const { name, files, kernels } = await commands.exportProgram('softmax', { out, target: 'simt' }, apart)
  expect({ name, kernels }).toEqual({ name: 'softmax', kernels: 1 })
  expect(await readFile(join(out, 'include/softmax.h'), 'utf8')).toContain('softmax')
  expect(files).toContain('CMakeLists.txt')
  await expect(commands.exportProgram('softmaxx', { out: join(work, 'none') }, apart)).rejects.toMatchObject({
    code: 'export.unknown',
    hint: expect.stringMatching(/^nearest of \d+: softmax/),
  })
})

test('selftest returns a report, and completion the script of a shell', async () => {
  const report = await commands.selftest({ device: 'simt', filter: '^matmul f32 batch=1 m=1 n=1 k=1 ' }, context)
  expect(report.failed).toBe(0)
  expect(report.passed).toBeGreaterThan(0)
  expect(await commands.completion('bash')).toBe((await heddle(['completion', 'bash'])).out)
  // @ts-expect-error there is no such shell
  await expect(commands.completion('csh')).rejects.toMatchObject({ code: 'cli.usage' })
})
