/**
 * Rows that are computed while they are loaded, as CUDA source: a function that returns a few consecutive elements of a row. Contiguous loads are
 * made as chunks, values that are the same for all elements are read once, and other values element by element. Serial reductions that are the same
 * for the whole row are computed once per call.
 */
import type { Expr, ExprOf } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import { classify, offsetOf } from '../../schedule/access/access.js'
import { whereKnown } from '../../schedule/access/segments.js'
import { type AlignedChunk, isOfChunk } from '../../schedule/normalise/aligned.js'
import { contains, foldsOnEveryPath, rewritePaths, rewriteWhere, usesIndex } from '../../schedule/normalise/rewrite.js'
import { expressionText, offsetText, operandText, type Scope, tensorOf } from '../print/expression.js'
import { scalarText, storageText } from '../print/names.js'
import { alternatives, inPieces, isAnswer, type Pieced } from './row_segments.js'

/** Index of an element in its row. */
export const column = 'c'

/** Main loops process up to 16 elements at a time, beginning at a multiple of that number. */
const chunkOfRow: AlignedChunk = { index: column, first: 'first', place: 'place', widths: [1, 2, 4, 8, 16], same: new Map() }

/** A tensor that has rows read in chunks, and the indices of a chunk's first element in terms of `c`. */
export interface ChunkRead {
  readonly tensor: string
  readonly indices: readonly Expr[]
}

/** Options for reading whole rows: in pieces, whose ends are passed to `bounds`. */
export interface WholeRows {
  readonly bounds: (bound: Expr) => void
}

/**
 * Statements that set `elements[e]` to element `c + e` for all e below Vec, of which `valid` exist; the others become zero. `chunkArguments` are
 * the template arguments of the loads, and `read` is called for each load. With `whole`, a function with the template parameter `Whole` reads rows
 * in pieces there.
 */
export function elementStatements(
  value: Expr,
  scope: Scope,
  chunkArguments = 'Vec',
  read?: (chunk: ChunkRead) => void,
  whole?: WholeRows,
): string[] {
  const plain = { value, conditions: [], bounds: [] }
  const pieced = whole === undefined ? plain : inPieces(value, column)
  if (pieced.conditions.length === 0) return statementsOf(plain, scope, chunkArguments, read)
  for (const bound of pieced.bounds) whole?.bounds(bound)
  return [
    'if constexpr (Whole) {',
    ...statementsOf(pieced, scope, chunkArguments, read).map((line) => `  ${line}`),
    '} else {',
    ...statementsOf(plain, scope, chunkArguments, read).map((line) => `  ${line}`),
    '}',
  ]
}

function statementsOf(pieced: Pieced, scope: Scope, chunkArguments: string, read?: (chunk: ChunkRead) => void): string[] {
  const { names } = scope
  const before: string[] = []
  const named = (text: (name: string) => string, wanted: string): string => {
    const name = names.fresh(wanted)
    before.push(text(name))
    return name
  }
  const rowValue = (type: Expr['type'], name: string, place: string): Expr => {
    scope.elements.set(name, `${name}${place}`)
    return { kind: 'element', type, row: name, index: { kind: 'index', type: 'i32', name: column } }
  }
  const answers = pieced.conditions.map(({ name, of }) => `const bool ${names.value(name)} = ${expressionText(of, scope)};`)
  const chunks = new Map<string, string>()
  const folded = new Map<string, string>()
  const certain = foldsOnEveryPath(pieced.value)
  /** Names a serial reduction. Reductions nested in it that are invariant over its steps are named too: a variance needs its mean once. */
  const once = (fold: ExprOf<'fold'>): Expr => {
    const inner = rewritePaths(fold.value, (node, always) =>
      node.kind === 'fold' && always && !usesIndex(node, fold.index) ? once(node) : undefined,
    )
    const text = expressionText({ ...fold, value: inner }, scope)
    const common = folded.get(text) ?? named((given) => `const ${scalarText[fold.type]} ${given} = ${text};`, 'common')
    folded.set(text, common)
    return rowValue(fold.type, common, '')
  }
  const rest = rewriteWhere(
    pieced.value,
    (e) => isAnswer(e, pieced),
    (node, path) => {
      const always = path?.length === 0
      // A load that only some elements evaluate may be outside of its tensor for the others.
      if (node.kind === 'fold' && !usesIndex(node, column) && (always || certain.has(hashOf(node)))) {
        return once(node)
      }
      if (path === undefined || node.kind !== 'load' || !usesIndex(node, column)) return undefined
      if (always && isOfChunk(node, chunkOfRow) && !contains(node, ({ kind }) => kind === 'element')) {
        const text = `valid > 0 ? ${expressionText(node, scope)} : 0`
        const found = folded.get(text) ?? named((given) => `const ${scalarText[node.type]} ${given} = ${text};`, 'of_chunk')
        folded.set(text, found)
        return rowValue(node.type, found, '')
      }
      const known = whereKnown(node, path)
      const tensor = tensorOf(known.tensor, scope)
      const access = classify(offsetOf(tensor, known.indices, scope.fixed), column)
      if (access.kind !== 'contiguous' || access.run !== Number.POSITIVE_INFINITY) return undefined
      if (contains(known, ({ kind }) => kind === 'element')) return undefined
      const handle = names.tensor(known.tensor)
      scope.used.tensors?.add(known.tensor)
      for (const each of alternatives(known, pieced)) read?.(each)
      const load = `heddle::load_chunk<${chunkArguments}>(${handle}, ${offsetText(known.tensor, known.indices, scope)}, valid)`
      const nothing = `heddle::Chunk<${storageText(tensor, names)}, Vec>{}`
      const guard = path.map((answer) => operandText(answer, scope)).join(' && ')
      const text = always ? load : `${guard} ? ${load} : ${nothing}`
      const chunk = chunks.get(text) ?? named((given) => `const auto ${given} = ${text};`, `${handle}_part`)
      chunks.set(text, chunk)
      return rowValue(node.type, chunk, '[e]')
    },
  )
  // Inside the loop, `c` is the element's own column; the chunks above begin at the first.
  const own = expressionText(rest, scope)
  const c = names.value(column)
  return [
    ...answers,
    ...before,
    'HEDDLE_UNROLL',
    'for (int e = 0; e < Vec; ++e) {',
    `  const auto element = [&]([[maybe_unused]] int ${c}) { return ${own}; };`,
    `  elements[e] = e < valid ? element(${c} + e) : 0.0f;`,
    '}',
  ]
}
