/** Assembles the lowering of one declaration from its parts. */
import type { Stmt } from '../ir/kernel.js'
import { callValue } from './calls.js'
import { evaluate } from './expressions.js'
import { type Lowering, uniqueNames } from './values.js'

/** A fresh lowering. Statements are appended to `body`; `taken` are the names values may not get. */
export function lowering(body: Stmt[], taken: Iterable<string> = []): Lowering {
  const self: Lowering = {
    evaluate: (node, place, name) => evaluate(node, place, self, name),
    call: (callee, args, node, place, name) => callValue(callee, args, node, place, self, name),
    emit: (stmt) => {
      body.push(stmt)
    },
    unique: uniqueNames(taken),
    spans: new Map(),
    stack: [],
  }
  return self
}
