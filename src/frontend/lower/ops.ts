/** Lowers op declarations to kernels: signature, body, and the checks that need both. The verifier runs after each step. */

import type { CallExpression, Node } from 'ts-morph'
import { impliedDomains } from '../../ir/facts/domains.js'
import { namesOf } from '../../ir/facts/facts.js'
import type { Kernel, SourceSpan } from '../../ir/kernel.js'
import { simplifyKernel } from '../../ir/simplify.js'
import { oversize } from '../../ir/size.js'
import { placeUpdates, UpdateConflict } from '../../ir/update.js'
import { verifyKernel } from '../../ir/verify.js'
import { stmtExprs, visitKernel } from '../../ir/walk.js'
import { checkTeams, sortedDims } from '../constructs/argsort.js'
import { Refusals } from '../diagnostics/refusals.js'
import { reject } from '../diagnostics/reject.js'
import { checkSteps } from '../recurrences/rows_checks.js'
import { inAccuracy } from '../signature/accuracy.js'
import { withoutAuxiliary } from '../signature/auxiliary_dims.js'
import { readSignature, type Signature, type SignatureContext } from '../signature/signature.js'
import { lowerBody } from './bodies.js'

/** Names that tensors and the body of a kernel use: dimensions, inputs, attributes and type parameters. */
function usedBy(kernel: Kernel): ReadonlySet<string> {
  const used = new Set<string>(
    kernel.tensors.flatMap(({ dims, dtype }) => [...dims, typeof dtype === 'string' ? dtype : dtype.param]),
  )
  visitKernel(kernel, (expr) => {
    if (expr.kind === 'load') used.add(expr.tensor)
    if (expr.kind === 'dim' || expr.kind === 'attr') used.add(expr.name)
  })
  return used
}

/** Refuses names that the signature declares but does not use. */
function checkUnused(signature: Signature, kernel: Kernel, used: ReadonlySet<string>, refusals: Refusals): void {
  const declared: readonly (readonly [string, readonly string[]])[] = [
    ['input', kernel.tensors.filter((tensor) => tensor.access === 'in').map((tensor) => tensor.name)],
    ['dimension', signature.dims],
    ['attribute', signature.attrs.map((attr) => attr.name)],
    ['type parameter', Object.keys(signature.types)],
  ]
  for (const [what, names] of declared) {
    for (const name of names) {
      if (used.has(name)) continue
      refusals.attempt(() =>
        reject(
          'unused',
          signature.written.get(name) ?? signature.nameNode,
          `${what} ${name} of ${signature.name} is never used`,
          what === 'dimension' ? unusedHint(name, signature) : 'use it or remove it',
        ),
      )
    }
  }
}

/** Hint for a dimension that only a fact names, and that does not follow from another. */
function unusedHint(name: string, { facts }: Signature): string {
  const stated = Object.entries(facts.dims).find(([, { equal = 0 }]) => namesOf(equal).includes(name))
  return stated === undefined
    ? 'use it or remove it'
    : `facts state sizes of dimensions that a tensor or the body has: remove it, and its fact of ${stated[0]}`
}

/** Refuses an integer divisor attribute whose default is 0. */
function checkDivisors(signature: Signature, kernel: Kernel): void {
  visitKernel(kernel, (expr) => {
    const divisor = expr.kind === 'call' && (expr.fn === 'idiv' || expr.fn === 'mod') ? expr.args[1] : undefined
    if (divisor?.kind !== 'attr' || signature.attrs.find(({ name }) => name === divisor.name)?.default !== 0) return
    reject(
      'zero',
      signature.written.get(divisor.name) ?? signature.nameNode,
      `attribute ${divisor.name} divides an integer, and its default is 0`,
      'give it a default that can divide',
    )
  })
}

/** Refuses a value that is too large for the passes, at the output that reads it or, for a value that several read, at the op's name. */
function checkSize(kernel: Kernel, values: ReadonlyMap<string, Node>, nameNode: Node): void {
  for (const stmt of kernel.body) {
    const reason = stmtExprs(stmt)
      .map(oversize)
      .find((each) => each !== undefined)
    if (reason === undefined) continue
    const what =
      'tensor' in stmt ? `output ${stmt.tensor}` : 'names' in stmt ? stmt.names.join(', ') : 'name' in stmt ? stmt.name : 'a fold'
    const node = 'tensor' in stmt ? (values.get(stmt.tensor) ?? nameNode) : nameNode
    reject('size', node, `${what} is too large: ${reason}`, 'keep parts of it in a row or a const at row level')
  }
}

/** The kernel with its updates placed. Refuses an output that cannot be replaced in the memory of the input it updates. */
function checkUpdates(kernel: Kernel, writtenAt: (output: string) => Node): Kernel {
  try {
    const placed = placeUpdates(kernel)
    verifyKernel(placed, 'placing updates')
    return placed
  } catch (error) {
    if (!(error instanceof UpdateConflict)) throw error
    const before = kernel.tensors.find(({ name }) => name === error.tensor)?.updates ?? 'x'
    return reject(
      'update',
      writtenAt(error.tensor),
      `output ${error.tensor} cannot be replaced in place: ${error.message}`,
      error.hint ?? `write s === place ? new : ${before}(..., s, ...), with a place that does not depend on s`,
    )
  }
}

/** Lowers `op(name, { ... })`. @throws Refused with all errors of the declaration; an internal error if a pass is wrong. */
export function lowerOp(
  declaration: CallExpression,
  source: SourceSpan,
  context: SignatureContext,
): { readonly kernel: Kernel; readonly nameNode: Node } {
  const refusals = new Refusals()
  return refusals.finish(() => lower(declaration, source, context, refusals))
}

function lower(
  declaration: CallExpression,
  source: SourceSpan,
  context: SignatureContext,
  refusals: Refusals,
): { readonly kernel: Kernel; readonly nameNode: Node } {
  const signature = readSignature(declaration, context, refusals)
  const { name, dims, types, attrs, tensors, nameNode } = signature
  const { values, ...lowered } = lowerBody(signature, refusals, context.spanOf)
  const kernel: Kernel = { name, source, dims, types, attrs, tensors, ...lowered }
  checkSize(kernel, values, nameNode)
  checkTeams(kernel, nameNode)
  checkSteps(kernel, nameNode)
  verifyKernel(kernel, 'lowering')
  const simple = inAccuracy(simplifyKernel(kernel), signature.accuracy)
  verifyKernel(simple, 'simplification')
  checkDivisors(signature, simple)
  const used = usedBy(simple)
  const { facts, freed } = withoutAuxiliary(
    signature.facts,
    dims.filter((dim) => !used.has(dim)),
    used,
  )
  checkUnused(signature, simple, new Set([...used, ...freed]), refusals)
  const placed = checkUpdates(simple, (output) => values.get(output) ?? nameNode)
  // Stated facts win: a body may allow more than makes sense.
  const inputs = { ...impliedDomains(simple), ...facts.inputs }
  return {
    kernel: {
      ...simple,
      dims: simple.dims.filter((dim) => !freed.includes(dim)),
      facts: { ...facts, inputs, dims: { ...facts.dims, ...sortedDims(placed, facts.dims) } },
    },
    nameNode,
  }
}
