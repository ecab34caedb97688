/**
 * Verifiers of the schedule: the invariants that each pass of `mapKernel` must keep, checked after every one. A failure is a defect of that pass,
 * so the error is internal and names the pass and the kernel. Expressions follow the rules of the IR. In addition, rows are read only where they
 * exist, every output is stored exactly once, and accesses in chunks are divisible by the width of a chunk.
 */

import { dim as dimVar, i32, index as indexVar } from '../../ir/build.js'
import {
  bind,
  bindIndex,
  checkExpr,
  checkIn,
  checkOutputs,
  expectIndex,
  type Fail,
  failingWith,
  type Scope,
  scopeOf,
} from '../../ir/check.js'
import type { Expr } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import { printExpr } from '../../ir/print.js'
import { dimsOf } from '../../ir/row_axis.js'
import { visit } from '../../ir/walk.js'
import { classify, offsetOf } from '../access/access.js'
import { isMember } from '../access/interleaved.js'
import { multiplesOf } from '../access/multiples.js'
import { isPassStmt, scheduledOf } from '../constructs/index.js'
import { type Loop, type NormalKernel, type NormalStmt, type RowDef, rowExprs, startsOf } from '../normalise/normal.js'
import type { Pass, Step } from '../normalise/passes.js'
import { hashOf, sameExpr } from '../normalise/rewrite.js'

/** Returns a function that fails with the pass and the kernel. */
export const failAfter =
  (pass: string, { kernel }: Pick<Instance, 'kernel'>): Fail =>
  (problem) => {
    throw new Error(`internal: after ${pass}: kernel ${kernel.name}: ${problem}`)
  }

/** Scope of all statements: parameters and the indices of the rows. */
function startOf(
  { kernel }: Pick<Instance, 'kernel'>,
  { axes, pieces }: Pick<NormalKernel, 'axes' | 'pieces'>,
  fail: Fail,
): Scope {
  for (const dim of axes.flatMap(dimsOf)) if (!kernel.dims.includes(dim)) fail(`a row index spans unknown dimension ${dim}`)
  return bind(
    scopeOf(kernel, fail),
    [...axes.map(({ index }) => index), ...(pieces === undefined ? [] : [pieces.index])].map((name) => ({
      kind: 'index',
      name,
      type: 'i32',
    })),
  )
}

const storedBy = (statements: readonly NormalStmt[]): string[] =>
  statements.flatMap((s) => ('tensor' in s ? [s.tensor] : 'stores' in s ? s.stores.map(({ tensor }) => tensor) : []))

function expectUnique(names: readonly string[], fail: Fail): void {
  const seen = new Set<string>()
  for (const name of names) {
    if (seen.has(name)) fail(`name ${name} is introduced twice`)
    seen.add(name)
  }
}

/**
 * Checks a kernel in normal form.
 * @param instance the input of normalisation, its updates placed
 * @throws an internal error naming pass, kernel and problem
 */
export function verifyNormal(normal: NormalKernel, instance: Instance, pass: string): void {
  const fail = failAfter(pass, instance)
  const { axes, rows, shared, loops, statements, elementwise } = normal
  expectUnique(
    [
      ...axes.map(({ index }) => index),
      ...rows.keys(),
      ...statements.flatMap((s) => scheduledOf(s).defines(s)).map(({ name }) => name),
    ],
    fail,
  )
  for (const row of rows.values()) checkRow(row, instance, fail)
  let scope = startOf(instance, normal, fail)
  for (const s of statements) {
    const scheduled = scheduledOf(s)
    const here = failingWith(scope, (problem) => fail(`${problem}\n  in ${scheduled.describe(s)}`))
    if ('loop' in s && !loops.includes(s.loop)) here.fail(`the loop over ${s.loop.index} is none of the kernel's`)
    const visible = isPassStmt(s)
      ? withRows(
          [...rows.values()].filter(({ loop }) => loop === s.loop),
          here,
        )
      : here
    if ('loop' in s) expectIndex(s.loop.length, here)
    checkReads([...scheduled.values(s), ...scheduled.places(s)], 'loop' in s ? s.loop : undefined, normal, visible)
    scheduled.verify(s, checkIn(visible))
    scope = bind(scope, scheduled.defines(s))
  }
  for (const [name, { kind }] of shared)
    if (
      !statements.some(
        (s) =>
          s.kind === kind &&
          scheduledOf(s)
            .defines(s)
            .some((each) => each.name === name),
      )
    )
      fail(`no statement makes the shared row ${name}`)
  checkOutputs(storedBy(statements), scope)
  const tied = statements.some((s) => s.kind !== 'let' && s.kind !== 'loopStore')
  if (elementwise && (tied || loops.length !== 1)) fail('it is elementwise, but something ties the elements of a row together')
}

/** Scope with rows added. */
const withRows = (rows: readonly RowDef[], scope: Scope): Scope =>
  bind(
    scope,
    rows.map(({ name, type }) => ({ kind: 'row', name, type })),
  )

/** Checks a row in chunks: it is a load of consecutive elements, of its tensor's type. */
function checkRow(row: RowDef, { kernel, dims, types }: Instance, fail: Fail): void {
  if (row.kind !== 'loaded') return
  const tensor = kernel.tensors.find(({ name }) => name === row.load.tensor)
  if (tensor === undefined) {
    fail(`row ${row.name} loads ${row.load.tensor}, which is no tensor`)
    return
  }
  if (resolveDType(tensor.dtype, types) !== row.dtype) fail(`row ${row.name} has elements of ${row.dtype}, its tensor has not`)
  if (row.interleaved !== undefined) {
    if (!isMember(tensor, row.load.indices, row.interleaved, row.loop.index, dims))
      fail(`row ${row.name} is no member ${row.interleaved.member} of groups of ${row.interleaved.factor}`)
    return
  }
  const access = classify(offsetOf(tensor, row.load.indices, dims), row.loop.index, multiplesOf(kernel))
  if (access.kind !== 'contiguous' || access.run !== row.run)
    fail(`row ${row.name} is loaded in runs of ${row.run}, but lies otherwise`)
  if (row.shift === undefined) return
  const [last, at] = [tensor.dims.at(-1) ?? '', row.load.indices.at(-1)]
  const extent = getOwn(dims, last)
  const isAlong = at !== undefined && sameExpr(at, indexVar(row.loop.index))
  if (!isAlong || !sameExpr(row.loop.length, extent === undefined ? dimVar(last) : i32(extent)))
    fail(`row ${row.name} is a span of a row of another length`)
}

/** Checks that rows are read only at the index of their loop. Shared rows may be read at any index. The rows that a row reads are checked too. */
function checkReads(exprs: readonly Expr[], loop: Loop | undefined, normal: NormalKernel, scope: Scope): void {
  const done = new Set<string>()
  const check = (expr: Expr): void =>
    visit(expr, (node) => {
      if (node.kind !== 'element' || normal.shared.has(node.row)) return
      const row = normal.rows.get(node.row) ?? scope.fail(`there is no row ${node.row}`)
      if (loop === undefined || row.loop !== loop || !sameExpr(node.index, indexVar(loop.index)))
        scope.fail(`${printExpr(node)} is read at another place than the index of its loop`)
      if (done.has(node.row)) return
      done.add(node.row)
      for (const value of rowExprs(row)) {
        const type = checkExpr(value, bindIndex(scope, row.loop.index))
        if (row.kind !== 'scanned' && type !== row.type) scope.fail(`row ${row.name} is ${type}, but says ${row.type}`)
        check(value)
      }
    })
  for (const expr of exprs) check(expr)
}

/**
 * Checks the steps of a kernel: every value that a step reads was computed before it, in its own pass or kept by an earlier one.
 * @throws an internal error naming pass, kernel and problem
 */
export function verifySteps(steps: readonly Step[], normal: NormalKernel, instance: Instance, pass: string): void {
  const fail = failAfter(pass, instance)
  let scope = startOf(instance, normal, fail)
  /** Kept rows by the length of their loop. */
  const kept = new Map<string, RowDef[]>()
  const stored: string[] = []
  const defined: string[] = []
  for (const step of steps) {
    const statements = step.kind === 'pass' ? step.pass.statements : [step]
    stored.push(...storedBy(statements))
    defined.push(...statements.flatMap((s) => scheduledOf(s).defines(s)).map(({ name }) => name))
    if (step.kind === 'pass') {
      const key = hashOf(step.pass.loop.length)
      checkPass(step.pass, kept.get(key) ?? [], normal, instance, scope)
      const rows = step.pass.rows.filter(({ keep }) => keep)
      kept.set(key, [...(kept.get(key) ?? []), ...rows])
      defined.push(...rows.map(({ name }) => name))
    } else {
      const said = failingWith(scope, (problem) => fail(`${problem}\n  in ${scheduledOf(step).describe(step)}`))
      scheduledOf(step).verify(step, checkIn(said))
    }
    scope = bind(
      scope,
      statements.flatMap((s) => scheduledOf(s).defines(s)),
    )
  }
  expectUnique(defined, fail)
  checkOutputs(stored, scope)
}

function checkPass(pass: Pass, kept: readonly RowDef[], normal: NormalKernel, instance: Instance, outer: Scope): void {
  const { loop, rows, statements } = pass
  const at = `the pass over ${loop.index}`
  if (!normal.loops.includes(loop)) outer.fail(`${at} runs over no loop of the kernel`)
  if (statements.length === 0) outer.fail(`${at} computes nothing`)
  expectIndex(loop.length, outer)
  let scope = withRows(kept, outer)
  for (const row of rows) {
    const { name } = row
    const here = failingWith(scope, (problem) => outer.fail(`${problem}\n  in row ${name} of ${at}`))
    if (kept.some((other) => other.name === name)) here.fail(`row ${name} is kept already`)
    if (row.keep && !normal.rows.has(name)) here.fail(`${name} is kept and no row of the kernel`)
    if (row.loop !== loop) here.fail(`row ${name} runs over ${row.loop.index}`)
    checkRow(row, instance, here.fail)
    if (row.kind === 'loaded' && row.guard !== undefined && checkExpr(row.guard, here) !== 'bool')
      here.fail('its guard is no boolean')
    const check = checkIn(here)
    rowExprs(row).forEach((value, i) => {
      const type = check.element(loop.index, value)
      if (row.kind !== 'scanned') check.says(name, row.type, type)
      else if (typeof row.monoid === 'string') check.says(name, row.type, check.combined(row.monoid, type))
      else check.says(name, ('next' in row.monoid ? row.monoid.taken[i] : row.monoid.fields[i]?.type) ?? 'bool', type)
    })
    startsOf(row).forEach((start, i) => {
      const field = row.kind === 'scanned' && typeof row.monoid !== 'string' ? row.monoid.fields[i] : undefined
      check.says(name, field?.type ?? 'bool', check.type(start))
    })
    scope = withRows([row], scope)
  }
  for (const s of statements) {
    const scheduled = scheduledOf(s)
    const here = failingWith(scope, (problem) => outer.fail(`${problem}\n  in ${scheduled.describe(s)} of ${at}`))
    if (s.loop !== loop) here.fail(`it runs over ${s.loop.index}`)
    checkReadsInPass(scheduled.values(s), loop, normal, here)
    scheduled.verify(s, checkIn(here))
  }
  for (const row of rows) if (row.kind !== 'loaded') checkReadsInPass(rowExprs(row), loop, normal, failingWith(scope, outer.fail))
}

/** The same rule in a pass, which may read rows that an earlier pass made: a row that is not shared is read at the loop's own index. */
function checkReadsInPass(exprs: readonly Expr[], loop: Loop, { shared }: NormalKernel, scope: Scope): void {
  for (const expr of exprs) {
    visit(expr, (node) => {
      if (node.kind === 'element' && !shared.has(node.row) && !sameExpr(node.index, indexVar(loop.index)))
        scope.fail(`${printExpr(node)} is read at another place than the index of its loop`)
    })
  }
}
