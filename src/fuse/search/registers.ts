/**
 * Whether a fused row program still keeps its rows in registers, for the cost model: values that several passes over a row use
 * are kept, and where they do not fit every pass reads the row again. The numbers are those of src/schedule/rules.ts, which
 * comes after this room; a test holds the two together.
 */
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { substitute, visit } from '../../ir/walk.js'
import { lengthOf, type Sizes } from './reads.js'

/** 32-bit registers a lane may spend on kept rows, and the values of a row it holds: as many as fit, at least the fewest. */
const registerBudget = 72
const mostValues = 32
const fewestValues = 8
/** Lanes of the largest team that keeps rows in registers. */
const lanes = 256
const registerBytes = 4

/** How a row program walks its rows. */
export interface RowWalk {
  /** Bytes of registers for each element of a row that a later pass uses again. */
  readonly keptBytes: number
  /** Whether rows do not fit registers, so that each pass reads what it needs again. */
  readonly rereads: boolean
  /** Passes over the row that use each tensor. */
  readonly passes: ReadonlyMap<string, number>
}

/** @param types storage types of the kernel's type parameters */
export function walkOf(kernel: Kernel, types: Instance['types'], sizes: Sizes): RowWalk {
  const walk = new Walk(kernel, types)
  const keptBytes = walk.keptBytes()
  const length = Math.max(0, ...kernel.body.map((stmt) => ('length' in stmt ? lengthOf(stmt.length, sizes) : 0)))
  let values = mostValues
  while (values > fewestValues && (values * keptBytes) / registerBytes > registerBudget) values /= 2
  const fits = (values * keptBytes) / registerBytes <= registerBudget && length <= lanes * values
  return { keptBytes, rereads: keptBytes > 0 && !fits, passes: walk.passes() }
}

type Looped = StmtOf<'reduce'> | StmtOf<'storeRow'>

/** A kernel's reductions and stores, ordered into passes by the reductions each waits for. */
class Walk {
  readonly #types: Instance['types']
  readonly #dtypes: ReadonlyMap<string, DType>
  readonly #rows: ReadonlyMap<string, StmtOf<'row'> | StmtOf<'scan'>>
  readonly #levels: readonly (readonly Looped[])[]

  constructor(kernel: Kernel, types: Instance['types']) {
    this.#types = types
    this.#dtypes = new Map(kernel.tensors.map(({ name, dtype }) => [name, resolveDType(dtype, this.#types)]))
    const rows = kernel.body.flatMap((stmt) => (stmt.kind === 'row' || stmt.kind === 'scan' ? [stmt] : []))
    this.#rows = new Map(rows.map((row) => [row.name, row]))
    this.#levels = this.#inLevels(kernel.body)
  }

  /** Bytes kept when a value is computed or loaded in the first pass that uses it, and held for later ones. */
  keptBytes(): number {
    const done = new Set<string>()
    const kept = new Map<string, number>()
    for (const level of this.#levels) {
      const here = new Set<string>()
      const need = (key: string, bytes: number, make: () => void): void => {
        if (done.has(key)) kept.set(key, bytes)
        else if (!here.has(key)) {
          here.add(key)
          make()
        }
      }
      const needAll = (expr: Expr, index: string): void =>
        visit(expr, (node) => {
          if (node.kind === 'load' && dependsOn(node, index)) {
            need(loadKey(node, index), dtypeInfo[this.#dtypes.get(node.tensor) ?? 'f32'].bytes, () => undefined)
          }
          const row = node.kind === 'element' ? this.#rows.get(node.row) : undefined
          if (row?.value.kind === 'load') needAll(row.value, row.index)
          else if (row !== undefined) need(`row ${row.name}`, registerBytes, () => needAll(row.value, row.index))
        })
      for (const stmt of level) needAll(stmt.value, stmt.index)
      for (const key of here) done.add(key)
    }
    return [...kept.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  /** Passes that need each tensor, directly or through row values. */
  passes(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const level of this.#levels) {
      const tensors = new Set<string>()
      const needAll = (expr: Expr): void =>
        visit(expr, (node) => {
          if (node.kind === 'load') tensors.add(node.tensor)
          const row = node.kind === 'element' ? this.#rows.get(node.row) : undefined
          if (row !== undefined) needAll(row.value)
        })
      for (const stmt of level) needAll(stmt.value)
      for (const tensor of tensors) counts.set(tensor, (counts.get(tensor) ?? 0) + 1)
    }
    return counts
  }

  #inLevels(body: readonly Stmt[]): Looped[][] {
    const levels = new Map<string, number>()
    const levelOf = (expr: Expr): number => {
      let level = 0
      visit(expr, (node) => {
        if (node.kind === 'local') level = Math.max(level, levels.get(node.name) ?? 0)
        const row = node.kind === 'element' ? this.#rows.get(node.row) : undefined
        if (row !== undefined) level = Math.max(level, levelOf(row.value))
      })
      return level
    }
    const found: Looped[][] = []
    for (const stmt of body) {
      if (stmt.kind === 'let') levels.set(stmt.name, levelOf(stmt.value))
      if (stmt.kind === 'threshold') levels.set(stmt.name, Math.max(...[stmt.target, stmt.key, stmt.value].map(levelOf)))
      if (stmt.kind !== 'reduce' && stmt.kind !== 'storeRow') continue
      const level = levelOf(stmt.value)
      found[level] = [...(found[level] ?? []), stmt]
      if (stmt.kind === 'reduce') levels.set(stmt.name, level + 1)
    }
    return Array.from(found, (level) => level ?? [])
  }
}

function dependsOn(load: ExprOf<'load'>, index: string): boolean {
  let found = false
  visit(load, (node) => {
    if (node.kind === 'index' && node.name === index) found = true
  })
  return found
}

/** Equal for loads of the same elements in different loops. */
const loadKey = (load: ExprOf<'load'>, index: string): string =>
  printExpr(substitute(load, new Map([[index, { kind: 'index', type: 'i32', name: '#' } as const]])))
