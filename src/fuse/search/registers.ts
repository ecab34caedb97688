/**
 * Estimates for the cost model whether the rows of a fused row program fit in registers: values that several passes over a row use are kept, and
 * where they do not fit every pass reads the row again. The numbers are those of src/schedule/rules.ts, which comes after this folder; a test
 * compares the two.
 */
import type { Looped } from '../../ir/constructs/construct.js'
import { constructOf } from '../../ir/constructs/index.js'
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import type { Kernel, Stmt } from '../../ir/kernel.js'
import { plainExpr } from '../../ir/print.js'
import { stmtExprs, substitute, visit } from '../../ir/walk.js'
import { lengthOf, type Sizes } from './reads.js'

/** 32-bit registers per lane for kept rows, and the number of values of a row that a lane holds: as many as fit, at least the fewest. */
const registerBudget = 72
const mostValues = 32
const fewestValues = 8
/** Lanes of the largest team that keeps rows in registers. */
const lanes = 256
const registerBytes = 4

/** Passes of a row program over its rows. */
export interface RowWalk {
  /** Bytes of registers for each element of a row that a later pass uses again. */
  readonly keptBytes: number
  /** True if rows do not fit registers, so that each pass reads what it needs again. */
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

type LoopedStmt = Extract<Stmt, Pick<Looped, 'length' | 'index'>>

/** Constructs of a kernel, ordered into passes by their dependencies. */
class Walk {
  readonly #types: Instance['types']
  readonly #dtypes: ReadonlyMap<string, DType>
  /** Rows that are recomputed by their readers. */
  readonly #rows: ReadonlyMap<string, LoopedStmt>
  readonly #passes: readonly (readonly LoopedStmt[])[]

  constructor(kernel: Kernel, types: Instance['types']) {
    this.#types = types
    this.#dtypes = new Map(kernel.tensors.map(({ name, dtype }) => [name, resolveDType(dtype, this.#types)]))
    this.#rows = new Map(
      kernel.body.flatMap((stmt) => {
        const { traits, defines } = constructOf(stmt)
        return traits.walk === 'where read' && 'length' in stmt ? defines(stmt).map(({ name }) => [name, stmt] as const) : []
      }),
    )
    this.#passes = this.#inPasses(kernel.body)
  }

  /** Bytes of values that are computed or loaded in the first pass that uses them, and kept for later ones. */
  keptBytes(): number {
    const done = new Set<string>()
    const kept = new Map<string, number>()
    for (const statements of this.#passes) {
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
          const values = row === undefined ? [] : constructOf(row).elementExprs(row)
          const all = (): void => {
            if (row !== undefined) for (const value of values) needAll(value, row.index)
          }
          if (values.length === 1 && values[0]?.kind === 'load') all()
          else if (node.kind === 'element' && row !== undefined) need(`row ${node.row}`, registerBytes, all)
        })
      for (const stmt of statements) for (const expr of constructOf(stmt).elementExprs(stmt)) needAll(expr, stmt.index)
      for (const key of here) done.add(key)
    }
    return [...kept.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  /** Number of passes that need each tensor, directly or through row values. */
  passes(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const statements of this.#passes) {
      const tensors = new Set<string>()
      const needAll = (expr: Expr): void =>
        visit(expr, (node) => {
          if (node.kind === 'load') tensors.add(node.tensor)
          const row = node.kind === 'element' ? this.#rows.get(node.row) : undefined
          if (row !== undefined) for (const value of constructOf(row).elementExprs(row)) needAll(value)
        })
      for (const expr of statements.flatMap((stmt) => constructOf(stmt).elementExprs(stmt))) needAll(expr)
      for (const tensor of tensors) counts.set(tensor, (counts.get(tensor) ?? 0) + 1)
    }
    return counts
  }

  /** Constructs that share each pass. Additional passes inside of a construct are not counted: the price does not include them. */
  #inPasses(body: readonly Stmt[]): LoopedStmt[][] {
    const levels = new Map<string, number>()
    const levelOf = (expr: Expr): number => {
      let level = 0
      visit(expr, (node) => {
        if (node.kind === 'local') level = Math.max(level, levels.get(node.name) ?? 0)
        if (node.kind !== 'element') return
        const row = this.#rows.get(node.row)
        const ofRow = (): number => Math.max(0, ...(row === undefined ? [] : constructOf(row).elementExprs(row).map(levelOf)))
        level = Math.max(level, row === undefined ? (levels.get(node.row) ?? 0) : ofRow())
      })
      return level
    }
    const found: LoopedStmt[][] = []
    for (const stmt of body) {
      const { traits, defines } = constructOf(stmt)
      if (traits.walk === 'where read') continue
      const level = Math.max(0, ...stmtExprs(stmt).map(levelOf))
      for (const { name } of defines(stmt)) levels.set(name, traits.walk === 'shared' ? level + 1 : level)
      if (traits.walk === 'shared' && 'length' in stmt) found[level] = [...(found[level] ?? []), stmt]
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

/** Key that is equal for loads of the same elements in different loops. */
const loadKey = (load: ExprOf<'load'>, index: string): string =>
  plainExpr(substitute(load, new Map([[index, { kind: 'index', type: 'i32', name: '#' } as const]])))
