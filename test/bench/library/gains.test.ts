/** The script that writes gains of tuned algorithms: its tables, from results in the format of the verbs. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { summarise } from '../../../src/bench/statistics.js'
import { repository } from '../../cli/host.js'
import { matmulTable, planTable, section, written } from './gains.mjs'

const at = (median: number) => summarise([median])
const matmul = { extents: [1, 32, 768, 768], used: ['layer0/query', 'layer0/key'], offered: 9, refused: [{}] }
const results = [
  { ...matmul, first: at(5), best: at(4), kept: {} },
  { ...matmul, extents: [1, 3, 3, 3], first: at(5), best: at(5), kept: undefined },
  { ...matmul, extents: [1, 2, 2, 2], first: undefined, best: undefined, kept: undefined },
]
const times = (plan: string, median: number) => ({ plan, batch: 1, seq: 32, milliseconds: at(median) })

test('a matmul has its times and its gain, and is empty if the library refuses it', () => {
  // Results come as JSON, which has no undefined.
  expect(
    matmulTable(JSON.parse(JSON.stringify(results)))
      .split('\n')
      .slice(2, 5),
  ).toEqual([
    '| 1 x 32 x 768 x 768 | query, key | 9 | 1 | 5.00 | 4.00 | 20.0 |',
    '| 1 x 3 x 3 x 3 | query, key | 9 | 1 | 5.00 | 5.00 | 0 |',
    '| 1 x 2 x 2 x 2 | query, key | 9 | 1 |  |  |  |',
  ])
})

test('a plan is compared with itself with tuned algorithms', () => {
  const table = planTable([times('unfused', 2), times('unfused tuned', 1.5), times('ft-v1', 1), times('ft-v1 tuned', 1)])
  expect(table.split('\n')[0]).toBe('| batch x length | `unfused` | tuned | ratio | `ft-v1` | tuned | ratio |')
  expect(table.split('\n')[2]).toBe('| 1x32 | 2.000 | 1.500 | 0.750 | 1.000 | 1.000 | 1.000 |')
})

test('the section takes its place in the page of results, again and again', () => {
  const page = readFileSync(`${repository}/src/docs/results.md`, 'utf8')
  const tune = { device: { name: 'a GPU', matmulVersion: 130100 }, results }
  const text = section({ f16: { tune, bench: { results: [times('unfused', 2), times('unfused tuned', 1.5)] } } })
  expect(text).toContain('a GPU, cuBLASLt 13.1, 12 heads of 64')
  const once = written(page, text)
  expect(once).toContain(text)
  expect(once.slice(0, once.indexOf(text)).length).toBeGreaterThan(page.length / 2)
  expect(written(once, text)).toBe(once)
  expect(() => written('a page', text)).toThrow('lacks')
})
