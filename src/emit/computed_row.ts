/**
 * Rows that are computed while they are loaded, as CUDA text: a function that gives some neighbouring elements of a row. Loads of
 * neighbours are made as chunks, and what is the same for all of them is read once, others element by element; folds that are the same for the
 * whole row are computed once a call.
 */
import type { Expr, ExprOf } from '../ir/expr.js'
import { hashOf } from '../ir/expr_hash.js'
import { classify, offsetOf } from '../schedule/access.js'
import { type AlignedChunk, isOfChunk } from '../schedule/aligned.js'
import { whereKnown } from '../schedule/pieces.js'
import { contains, foldsOnEveryPath, rewritePaths, rewriteWhere, usesIndex } from '../schedule/rewrite.js'
import { expressionText, offsetText, operandText, type Scope, tensorOf } from './expression.js'
import { scalarText, storageText } from './names.js'
import { alternatives, inPieces, isAnswer, type Pieced } from './row_pieces.js'

/** The index of an element in its row. */
export const column = 'c'

/** Main loops take up to 16 elements at a time, from a multiple of as many on. */
const chunkOfRow: AlignedChunk = { index: column, first: 'first', place: 'place', widths: [1, 2, 4, 8, 16], same: new Set() }

/** A tensor some of whose rows are read in chunks, and the indices of a chunk's first element in terms of `c`. */
export interface ChunkRead {
  readonly tensor: string
  readonly indices: readonly Expr[]
}

/** How elements are read where their rows are whole: in pieces, of which `bounds` hears where they end. */
export interface WholeRows {
  readonly bounds: (bound: Expr) => void
}

/**
 * The statements that set `elements[e]` to element `c + e` for all e below Vec, of which `valid` exist; the others become zero. `chunkArguments` are
 * those of the loads' template, and `read` hears of each. With `whole`, a function whose template says `Whole` reads rows in pieces there.
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
  /** A loop by a name, with one for each loop inside of it that all of its steps have in common: a variance needs its mean once. */
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
      // What only some elements evaluate may lie outside of its tensor for the others.
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
  // Inside of the loop `c` is the element's own column; chunks above begin at the first.
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
