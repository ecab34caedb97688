/**
 * Blocks of a multiprocessor for windows of several places. nvcc converts every element that a thread holds before the first sum if it has the
 * registers, and then few threads are left to hide latency: 3 x 3 windows in spans took 167 registers and 16.2 us, and with 80 of them 10.6 us (H200).
 */
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import { visit } from '../../ir/walk.js'
import { passValues, type Step, statementsOf } from '../normalise/passes.js'
import { contains, hashOf, usesIndex } from '../normalise/rewrite.js'

/** Most registers of values for so many blocks of 256 threads: of 80 and 128 registers, those that offsets and the sums of an element leave. */
const most = [
  { blocks: 3, registers: 62 },
  { blocks: 2, registers: 92 },
] as const
/** Registers of conditions that each element tests. */
const tests = 12

/** Number of blocks for which a thread has registers for the chunks that it loads and stores, and for its scalars. */
export function blocksOf({ kernel, types }: Pick<Instance, 'kernel' | 'types'>, steps: readonly Step[], vec: number): number {
  const loaded = new Map<string, { readonly bytes: number; left: number; right: number }>()
  let [scalars, stored] = [0, 0]
  const results = new Set<string>()
  const alone = new Map<string, number>()
  for (const step of steps) {
    if (step.kind === 'let') scalars++
    if (step.kind !== 'pass') continue
    for (const row of step.pass.rows) {
      if (row.kind !== 'loaded') continue
      const { bytes } = dtypeInfo[row.dtype]
      const key = [row.load, ...(row.guard === undefined ? [] : [row.guard])].map(hashOf).join(' ')
      const { left, right } = loaded.get(key) ?? { left: 0, right: 0 }
      const shift = row.shift ?? 0
      loaded.set(key, { bytes, left: Math.max(left, -shift), right: Math.max(right, shift) })
    }
    const values = [...step.pass.rows.flatMap((row) => (row.kind === 'computed' ? [row.value] : [])), ...passValues(step.pass)]
    if (values.some((value) => contains(value, isTest(step.pass.loop.index)))) scalars += tests
    // Other loads are made for all elements of a chunk at once.
    for (const value of values)
      visit(value, (node) => {
        if (node.kind === 'load') alone.set(hashOf(node), usesIndex(node, step.pass.loop.index) ? vec : 1)
      })
    for (const { tensor: name } of statementsOf(step.pass, 'loopStore')) {
      results.add(name)
      const tensor = kernel.tensors.find((each) => each.name === name)
      if (tensor !== undefined) stored += wordsOf(vec, dtypeInfo[resolveDType(tensor.dtype, types)].bytes)
    }
  }
  // nvcc computes several results of a place side by side: their sums are as many registers again.
  if (results.size > 1) return 1
  const held = [...loaded.values()].map(
    ({ bytes, left, right }) => wordsOf(vec, bytes) + wordsOf(left, bytes) + wordsOf(right, bytes),
  )
  const needed = [...held, ...alone.values()].reduce((sum, each) => sum + each, stored + scalars)
  return most.find(({ registers }) => needed <= registers)?.blocks ?? 1
}

const isTest =
  (index: string) =>
  (e: Expr): boolean =>
    e.kind === 'call' && e.type === 'bool' && usesIndex(e, index)

const wordsOf = (elements: number, bytes: number): number => Math.ceil((elements * bytes) / 4)
