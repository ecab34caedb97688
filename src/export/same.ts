/** Checks the sizes that an export computes from dimensions against those that the runtime flattens at the same dimensions. */
import { usageError } from '../errors.js'
import type { FlatProgram } from '../runtime/program_flatten.js'
import type { FlatStep } from '../runtime/program_steps.js'
import type { Choice, Lowered, LoweredStep } from './lowered.js'
import { evaluateSize, type Size } from './sizes.js'

type Sizes = Readonly<Record<string, number>>

/** @throws usage `export.sizes` with the step or value, the export's size, and the runtime's */
export function expectSame(lowered: Lowered, flat: FlatProgram, dims: Sizes): void {
  const at = (size: Size): number => evaluateSize(size, dims)
  const hold = (what: string, mine: unknown, theirs: unknown): void => {
    if (JSON.stringify(mine) === JSON.stringify(theirs)) return
    const sizes = lowered.dims.map((dim) => `${dim}=${dims[dim]}`).join(', ')
    throw usageError(
      'export.sizes',
      `expected ${JSON.stringify(theirs)} for ${what} at ${sizes || 'its sizes'}, got ${JSON.stringify(mine)}`,
      {
        hint: `the program's steps depend on these sizes: fix one, such as --dims ${lowered.dims[0] ?? 'n'}=...`,
      },
    )
  }
  hold('the number of steps', lowered.steps.length, flat.steps.length)
  hold('the number of values', lowered.storages.length, flat.storages.length)
  for (const [i, storage] of flat.storages.entries()) {
    const mine = lowered.storages[i]
    if (mine === undefined) continue
    hold(`value ${i}`, [at(mine.bytes), mine.first, mine.last], [storage.bytes, storage.first, storage.last])
  }
  for (const [i, step] of flat.steps.entries()) {
    const mine = lowered.steps[i]
    if (mine !== undefined) hold(step.label, atSizes(mine, at), theirs(step))
  }
}

function atSizes(step: LoweredStep, at: (size: Size) => number): unknown {
  const { kind, label, storages, numbers } = step
  const common = { kind, label, storages }
  if (kind === 'copy') return common
  if (kind === 'kernel')
    return {
      ...common,
      key: step.key,
      numbers: numbers.map(at),
      attrs: step.attrs.map((attr) => (typeof attr === 'number' ? attr : at(attr))),
    }
  const { bias = null, residual = null, relu, dtypes, choices = [] } = step
  const found = settled(numbers.map(at))
  const key = chosen(choices, found)
  return key === undefined
    ? { ...common, dtypes, numbers: found, bias, residual, relu }
    : { ...common, kind: 'kernel', key, numbers: found.slice(1, 4), attrs: [] }
}

/** Kernel that the CPU device runs instead of its library: `choose` of native/export/program.cpp, on any architecture. */
function chosen(choices: readonly Choice[], [batch, m = 0, n = 0, k = 0, ...strides]: readonly number[]): string | undefined {
  const isPlain = batch === 1 && [k, k, n].every((row, i) => strides[3 * i + 1] === row && strides[3 * i + 2] === 1)
  return choices.find(
    ({ length, depth, fromRows, toRows = m }) => isPlain && length === n && depth === k && fromRows <= m && m <= toRows,
  )?.key
}

function theirs(step: FlatStep): unknown {
  if (step.kind === 'copy') return { kind: step.kind, label: step.label, storages: [step.from, step.to] }
  if (step.kind === 'kernel') {
    const { kind, label, buffers, key, dims, attrs } = step
    return { kind, label, storages: buffers, key, numbers: dims, attrs }
  }
  const { kind, label, a, b, out, dtypes, matmul, epilogue } = step
  const { bias = null, residual = null, relu = false } = epilogue ?? {}
  return {
    kind,
    label,
    storages: [a, b, out],
    dtypes,
    numbers: [...matmul.extents, ...matmul.strides.flat()],
    bias,
    residual,
    relu,
  }
}

/** Strides normalised as in a run: `settle` of native/export/program.cpp. */
function settled([batch = 1, m = 1, n = 1, k = 1, ...strides]: readonly number[]): readonly number[] {
  const settle = (at: number, first: number, second: number): readonly number[] => {
    let [x, y] = [strides[at + 1] ?? 0, strides[at + 2] ?? 0]
    if (first === 1) x = 0
    if (second === 1) y = x === 1 && first > 1 ? first : 1
    if (first === 1) x = y === 1 ? second : 1
    return [batch === 1 ? 0 : (strides[at] ?? 0), x, y]
  }
  return [batch, m, n, k, ...settle(0, m, k), ...settle(3, n, k), ...settle(6, m, n)]
}
