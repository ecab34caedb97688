/** `--on` with several machines: names, one that fails, wrong usage, exit codes, and the table and page with a column for each. */
import { expect, test } from 'vitest'
import type { CliContext } from '../../src/cli/context.js'
import { machineLines, machinesOption, machinesTable, onEach } from '../../src/cli/machines.js'
import { environmentError, usageError } from '../../src/errors.js'
import { readRun } from '../../src/explorer/runs/read.js'
import { benchView } from '../../src/explorer/runs/view.js'
import { heddle } from './host.js'

const given = (...texts: readonly string[]): readonly string[] => {
  const parse = machinesOption().parseArg
  return texts.reduce<readonly string[]>((before, text) => parse?.(text, before) ?? [], [])
}

test('names are separated by commas; a command prefix keeps its own', () => {
  expect(given('a,me@b')).toEqual(['a', 'me@b'])
  expect(given('a', 'srun --gres=gpu:1,b', 'a')).toEqual(['a', 'srun --gres=gpu:1,b'])
  expect(given('')).toEqual([''])
})

let log = ''
const context: CliContext = {
  root: '/',
  signal: new AbortController().signal,
  verbose: false,
  out: () => undefined,
  log: (text) => {
    log += text
  },
}
const run = async (on: string): Promise<number> => {
  if (on.startsWith('lost')) throw environmentError('remote.lost', `the link to ${on} was lost`, { hint: 'run it again' })
  if (on === 'wrong') throw usageError('bench.unknown', 'there is no kernel x')
  return on.length
}

test('a machine that fails is said, and the others go on; the exit code is its', async () => {
  expect(await onEach(['a', 'lost', 'bc'], context, run)).toEqual({
    machines: [
      { on: 'a', result: 1 },
      { on: 'lost', error: { code: 'remote.lost', message: 'the link to lost was lost' } },
      { on: 'bc', result: 2 },
    ],
    exitCode: 3,
  })
  expect(log).toBe('on a:\non lost:\nerror[remote.lost]: the link to lost was lost\nhint: run it again\non bc:\n')
  expect(await onEach(['a', 'b'], context, run)).toMatchObject({ exitCode: 0 })
})

test('wrong usage ends it, since it is wrong on each', async () => {
  await expect(onEach(['wrong', 'a'], context, run)).rejects.toMatchObject({ code: 'bench.unknown' })
})

const milliseconds = { median: 0.002, low: 0.001, high: 0.003, best: 0.001, samples: 5 }
const time = {
  plan: 'fused',
  dims: { m: 2 },
  samples: [0.002],
  milliseconds,
  launches: 1,
  captured: true,
  workload: { bytes: 8 },
}
const slower = { ...time, milliseconds: { ...milliseconds, median: 0.0045 } }
const resultOf = (name: string, times: readonly object[]) => ({
  ...{ subject: 'ff', kind: 'graph', dtype: 'f16', device: { kind: 'cuda', name } },
  sizes: [times],
})

test('the table has a column for each, with gaps', () => {
  const times = [{ on: 'a', result: [time] }, { on: 'lost' }, { on: 'b', result: [slower, { ...time, plan: 'other' }] }]
  const lines = machinesTable(times).split('\n')
  expect(lines.map((line) => line.replace(/ +/g, ' ')).filter((line) => line.startsWith('│'))).toEqual([
    '│ shape │ plan │ a us │ lost us │ b us │',
    '│ m=2 │ fused │ 2.000 │ - │ 4.500 │',
    '│ m=2 │ other │ - │ - │ 2.000 │',
  ])
  const device = { kind: 'cuda', name: 'H200' } as const
  expect(
    machineLines([
      { on: 'a', result: { device } },
      { on: 'lost', error: { code: 'remote.lost', message: '' } },
    ]),
  ).toBe('a: cuda H200\nlost: failed, remote.lost\n')
})

test('the page has a column for each', () => {
  const machines = [
    { on: 'a', result: resultOf('H100', [time]) },
    { on: 'lost' },
    { on: 'b', result: resultOf('H200', [slower]) },
  ]
  const view = benchView([{ any: readRun(JSON.stringify({ machines }), 'runs.json') }], [], 1.05)
  expect(view?.runs[0]).toMatchObject({
    title: 'ff on a, b',
    facts: [
      { name: 'a', value: 'H100 (cuda)' },
      { name: 'b', value: 'H200 (cuda)' },
    ],
    notes: expect.arrayContaining(['lost failed, and has no times.']),
    rows: [{ name: 'fused on a' }, { name: 'fused on b', milliseconds: { median: 0.0045 } }],
  })
  expect(view?.runs[0]?.tables[0]).toMatchObject({
    columns: ['plan', 'shape', 'a', 'b'],
    rows: [['fused', 'm=2', '0.002000', '0.004500']],
  })
})

test('options of one machine are refused before anything is sent', async () => {
  for (const option of ['--save', '--baseline']) {
    const { exitCode, log: text } = await heddle(['bench', 'layer_norm', '--on', 'a,b', option, 'x.json'])
    expect({ exitCode, text }).toEqual({
      exitCode: 2,
      text: expect.stringContaining(`error[remote.several]: ${option} belongs to one machine, got a, b`),
    })
  }
})
