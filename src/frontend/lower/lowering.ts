/** Assembles the lowering of one declaration from its parts, and enforces the size limits of a body. */
import type { Node } from 'ts-morph'
import { writtenAt } from '../../ir/expr.js'
import type { SourceSpan, Stmt } from '../../ir/kernel.js'
import { limits } from '../../ir/size.js'
import { nestingHint } from '../diagnostics/nesting.js'
import type { Refusals } from '../diagnostics/refusals.js'
import { reject } from '../diagnostics/reject.js'
import { type Lowering, uniqueNames } from '../static/values.js'
import { callValue } from './calls.js'
import { evaluate } from './expressions.js'

/** Refuses too many expressions, and too deeply nested ones. @param path nodes being evaluated, outermost first */
function checkSize(expressions: number, path: readonly Node[], root: Node): void {
  if (expressions <= limits.expressions && path.length <= limits.nesting) return
  const inRoot = path.filter(
    (node) => node.getSourceFile() === root.getSourceFile() && root.containsRange(node.getPos(), node.getEnd()),
  )
  const place = inRoot.at(-1) ?? root
  if (expressions > limits.expressions) {
    const reason = `this makes more than ${limits.expressions} expressions, the functions it calls written out`
    reject('size', place, reason, 'call a function once and name its result; repeat with a row or a reduction')
  }
  const reason = `this has more than ${limits.nesting} expressions inside one another`
  reject('size', place, reason, nestingHint)
}

/**
 * Creates a lowering. Statements are appended to `body`; `taken` are reserved names. An expression that is too large is refused at the
 * innermost node of `root`, the declaration's function, that leads to it: its source may lie in a called function.
 * @param refusals collects all other refusals
 * @param spanOf source spans that expressions carry; undefined if they are not needed
 */
export function lowering(
  body: Stmt[],
  root: Node,
  refusals: Refusals,
  spanOf: ((node: Node) => SourceSpan) | undefined,
  taken: Iterable<string> = [],
): Lowering {
  const path: Node[] = []
  let expressions = 0
  const self: Lowering = {
    evaluate: (node, at, name) => {
      path.push(node)
      checkSize(++expressions, path, root)
      const value = evaluate(node, at, self, name)
      path.pop()
      return value.kind !== 'scalar' || spanOf === undefined
        ? value
        : { ...value, expr: writtenAt(value.expr, () => spanOf(node)) }
    },
    call: (callee, args, node, at, name) => callValue(callee, args, node, at, self, name),
    emit: (stmt) => {
      body.push(stmt)
    },
    collect: (action) => {
      const from = body.length
      const made = action()
      return { made, statements: body.splice(from) }
    },
    unique: uniqueNames(taken),
    spans: new Map(),
    named: new Map(),
    loops: new Map(),
    inner: new Set(),
    inOrder: new Map(),
    stack: [],
    attempt: (action) => {
      const [depth, calls] = [path.length, self.stack.length]
      const result = refusals.attempt(action)
      path.length = depth
      self.stack.length = calls
      return result
    },
    mark: () => {
      const [depth, calls, count] = [path.length, self.stack.length, refusals.count]
      return () => {
        path.length = depth
        self.stack.length = calls
        refusals.forget(count)
      }
    },
  }
  return self
}
