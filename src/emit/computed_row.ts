/**
 * Rows that are computed while they are loaded, as CUDA text: a function that gives some neighbouring elements of a row. Loads of
 * neighbours are made as chunks, others element by element; folds that are the same for the whole row are computed once a call.
 */
import type { Expr } from '../ir/expr.js'
import { keyOf } from '../ir/keys.js'
import { classify, offsetOf } from '../schedule/access.js'
import { contains, foldsOnEveryPath, rewritePaths, usesIndex } from '../schedule/rewrite.js'
import { expressionText, offsetText, type Scope, tensorOf } from './expression.js'
import { scalarText } from './names.js'

/** The index of an element in its row. */
export const column = 'c'

/** A tensor some of whose rows are read in chunks, and the indices of a chunk's first element in terms of `c`. */
export interface ChunkRead {
  readonly tensor: string
  readonly indices: readonly Expr[]
}

/**
 * The statements that set `elements[e]` to element `c + e` for all e below Vec, of which `valid` exist; the others become zero. `chunkArguments` are
 * those of the loads' template, and `read` hears of each.
 */
export function elementStatements(
  value: Expr,
  scope: Scope,
  chunkArguments = 'Vec',
  read?: (chunk: ChunkRead) => void,
): string[] {
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
  const chunks = new Map<string, string>()
  const folded = new Map<string, string>()
  const certain = foldsOnEveryPath(value)
  const rest = rewritePaths(value, (node, always) => {
    // What only some elements evaluate may lie outside of its tensor for the others.
    if (node.kind === 'fold' && !usesIndex(node, column) && (always || certain.has(keyOf(node)))) {
      const text = expressionText(node, scope)
      const common = folded.get(text) ?? named((given) => `const ${scalarText[node.type]} ${given} = ${text};`, 'common')
      folded.set(text, common)
      return rowValue(node.type, common, '')
    }
    if (!always || node.kind !== 'load' || !usesIndex(node, column)) return undefined
    const tensor = tensorOf(node.tensor, scope)
    const access = classify(offsetOf(tensor, node.indices, scope.fixed), column)
    if (access.kind !== 'contiguous' || access.run !== Number.POSITIVE_INFINITY) return undefined
    if (contains(node, ({ kind }) => kind === 'element')) return undefined
    const handle = names.tensor(node.tensor)
    scope.used.tensors?.add(node.tensor)
    read?.(node)
    const load = `heddle::load_chunk<${chunkArguments}>(${handle}, ${offsetText(node.tensor, node.indices, scope)}, valid)`
    const chunk = chunks.get(load) ?? named((given) => `const auto ${given} = ${load};`, `${handle}_part`)
    chunks.set(load, chunk)
    return rowValue(node.type, chunk, '[e]')
  })
  // Inside of the loop `c` is the element's own column; chunks above begin at the first.
  const own = expressionText(rest, scope)
  const c = names.value(column)
  return [
    ...before,
    'HEDDLE_UNROLL',
    'for (int e = 0; e < Vec; ++e) {',
    `  const auto element = [&]([[maybe_unused]] int ${c}) { return ${own}; };`,
    `  elements[e] = e < valid ? element(${c} + e) : 0.0f;`,
    '}',
  ]
}
