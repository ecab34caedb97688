/**
 * The IR verifier: invariants that every pass may rely on and must preserve. It runs after each pass; a failure is a defect of that
 * pass, so the error is internal and names it. Rules: names are unique, every name is bound before it is read and read
 * as its own kind, every node has the type that follows from its operands, and every output is stored exactly once.
 */
import { bind, checkIn, checkOutputs, expectIndex, type Fail, failingWith, type Scope, scopeOf } from './check.js'
import { constructOf } from './constructs/index.js'
import type { Kernel, Stmt, TensorParam } from './kernel.js'
import type { Layout } from './layout.js'
import { printStmt } from './print.js'
import { dimsOf } from './row_axis.js'
import { introducedNames } from './walk.js'

/** Checks a statement and returns the scope of the next one. */
function checkStmt(stmt: Stmt, scope: Scope): Scope {
  const fail: Fail = (problem) => scope.fail(`${problem}\n  in ${printStmt(stmt)}`)
  const construct = constructOf(stmt)
  construct.verify(stmt, checkIn(failingWith(scope, fail)))
  return bind(scope, construct.defines(stmt))
}

/** Names that a kernel introduces: parameters, row indices, and those of its statements. */
const kernelNames = (kernel: Kernel): string[] => [
  ...kernel.dims,
  ...kernel.attrs.map((attr) => attr.name),
  ...kernel.tensors.map((tensor) => tensor.name),
  ...kernel.rows.map((row) => row.index),
  ...kernel.body.flatMap(introducedNames),
]

/** Checks that an output which updates an input, and thus shares its memory, has the same storage type, dimensions and layout. */
function checkUpdate(tensor: TensorParam, tensors: readonly TensorParam[], fail: Fail): void {
  const { name, access, updates } = tensor
  if (updates === undefined) return
  const before = tensors.find((other) => other.name === updates)
  if (access !== 'out' || before?.access !== 'in') fail(`${name} updates ${updates}: an output may update an input`)
  const form = (of: TensorParam | undefined): string => JSON.stringify([of?.dtype, of?.dims, of?.layout.name])
  if (form(tensor) !== form(before)) fail(`${name} updates ${updates}, which has another type, shape or layout`)
  if (tensors.some((other) => other !== tensor && other.updates === updates)) fail(`${updates} is updated twice`)
}

function checkParameters(kernel: Kernel, fail: Fail): void {
  const seen = new Set<string>()
  for (const name of kernelNames(kernel)) {
    if (seen.has(name)) fail(`name ${name} is introduced twice`)
    seen.add(name)
  }
  const dims = new Set(kernel.dims)
  for (const row of kernel.rows)
    for (const dim of dimsOf(row)) if (!dims.has(dim)) fail(`row index ${row.index} spans unknown dimension ${dim}`)
  for (const { name, dims: extents, layout } of kernel.tensors) {
    for (const extent of extents) if (!dims.has(extent)) fail(`tensor ${name} has unknown dimension ${extent}`)
    if (new Set(layout.axes).size !== layout.axes.length) fail(`tensor ${name} is in a layout that names an axis twice`)
    if (layout.axes.length !== extents.length)
      fail(`tensor ${name} of rank ${extents.length} is in a layout of ${layout.axes.length} axes`)
  }
  for (const tensor of kernel.tensors) checkUpdate(tensor, kernel.tensors, fail)
  const firstOut = kernel.tensors.findIndex((tensor) => tensor.access === 'out')
  if (firstOut < 0) fail('it has no output')
  if (kernel.tensors.slice(firstOut).some((tensor) => tensor.access === 'in')) fail('an input follows an output')
}

/**
 * Checks every rule of the IR.
 * @param pass the pass that produced the kernel; the error names it.
 * @throws an internal error naming pass, kernel, problem and statement.
 */
export function verifyKernel(kernel: Kernel, pass: string): void {
  const fail: Fail = (problem) => {
    throw new Error(`internal: after ${pass}: kernel ${kernel.name}: ${problem}`)
  }
  checkParameters(kernel, fail)
  const indices = kernel.rows.map((row) => ({ kind: 'index', name: row.index, type: 'i32' }) as const)
  let scope = bind(scopeOf(kernel, fail), indices)
  for (const stmt of kernel.body) scope = checkStmt(stmt, scope)
  const stored = kernel.body.flatMap((stmt) => ('tensor' in stmt ? [stmt.tensor] : []))
  checkOutputs(stored, scope)
}

/** Checks that a layout is integer arithmetic over its own axes. @throws an internal error naming the pass. */
export function verifyLayout(layout: Layout, pass: string): void {
  const fail: Fail = (problem) => {
    throw new Error(`internal: after ${pass}: layout ${layout.name}: ${problem}`)
  }
  if (new Set(layout.axes).size !== layout.axes.length) fail('an axis is named twice')
  const names = scopeOf({ dims: layout.axes, attrs: [], tensors: [], types: {} }, fail)
  const indices = layout.axes.map((name) => ({ kind: 'index', name, type: 'i32' }) as const)
  expectIndex(layout.offset, bind(names, indices))
  expectIndex(layout.size, names)
}
