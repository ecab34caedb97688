/**
 * Limit on the nesting depth of a spec. TypeScript's parser and checker recurse at every level, so sources that are too deep for them are
 * found beforehand: by brackets in a source that cannot be parsed, and in the tree of one that can.
 */
import { type SourceFile, ts } from 'ts-morph'
import { limits } from '../../ir/size.js'
import type { Diagnostic } from './reject.js'
import { codes, locate } from './reject.js'

/** Levels around a body's expression: the op, its fields, functions, blocks. */
const around = 64

export const nestingHint = 'give parts of it a name with const, or sum a row'

/** The refusal of a file that is nested too deep, located at the outermost node on that line. */
export function checkNesting(file: SourceFile, fileName: string): Diagnostic | undefined {
  const waiting: { readonly node: ts.Node; readonly depth: number }[] = [{ node: file.compilerNode, depth: 0 }]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { node, depth } = at
    if (depth > limits.nesting + around) {
      return {
        code: codes.size,
        message: `this has more than ${limits.nesting} expressions inside one another`,
        file: fileName,
        ...locate(file, node.getStart(file.compilerNode), node.getWidth(file.compilerNode)),
        hint: nestingHint,
      }
    }
    ts.forEachChild(node, (child) => {
      waiting.push({ node: child, depth: depth + 1 })
    })
  }
  return undefined
}

/** The first line of a source with too many open brackets; undefined if there is none. */
export function deepLine(text: string): number | undefined {
  let [open, line] = [0, 1]
  for (const sign of text) {
    if (sign === '\n') line++
    if ('([{'.includes(sign)) open++
    if (')]}'.includes(sign)) open--
    if (open > limits.nesting) return line
  }
  return undefined
}
