/** The list of planted faults is valid: every text is in its file, and every named test exists. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { faultKinds, plantedFaults } from './planted.js'

it('at least ten faults of each kind, each with a unique name', () => {
  for (const kind of faultKinds) expect(plantedFaults.filter((fault) => fault.kind === kind).length).toBeGreaterThanOrEqual(10)
  expect(plantedFaults.filter(({ kind }) => kind === 'fuzz')).toHaveLength(3)
  expect(new Set(plantedFaults.map(({ id }) => id)).size).toBe(plantedFaults.length)
})

it.each(plantedFaults)('$id changes one place, for which tests are named', ({ file, find, replacement, wrong, tests }) => {
  expect(readFileSync(file, 'utf8').split(find).length - 1, `${file} has the text once`).toBe(1)
  expect(replacement).not.toBe(find)
  expect(wrong).toMatch(/^[A-Z`][^\n]*\.$/)
  expect([1, 2]).toContain(tests.length)
  for (const test of tests) expect(existsSync(test), test).toBe(true)
})
