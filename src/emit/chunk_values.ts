/**
 * Values shared by the elements of a chunk: places expressed by the chunk's first element (src/schedule/aligned.ts), and values that are the same
 * for all elements. The latter, such as a scale of their group or the word they are packed in, are computed once per chunk. Runs when a pass is
 * emitted.
 */
import { local } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { hashOf } from '../ir/expr_hash.js'
import { type AlignedChunk, inAlignedChunk, isOfChunk } from '../schedule/aligned.js'
import { passStatementOf } from '../schedule/constructs/index.js'
import { mapRow, type Pass, type PassRow } from '../schedule/passes.js'
import { contains, rewritePaths, usesIndex } from '../schedule/rewrite.js'
import * as sharedRow from './constructs/shared_row.js'
import type { PassContext } from './context.js'
import { expressionText } from './expression.js'
import { faults } from './faults.js'
import { scalarText } from './names.js'

interface ChunkValue {
  readonly name: string
  readonly value: Expr
}

export interface ChunkedPass {
  /** The pass, with elements that read the values computed once per chunk. */
  readonly pass: Pass
  readonly context: PassContext
  /** Lines before the elements of a chunk, of which at least one exists unless `mayBeEmpty`. */
  lines(mayBeEmpty: boolean): readonly string[]
}

/** Rewrites a pass over chunks that begin at multiples of their width. Returned unchanged if chunks are single elements, or if there are none. */
export function ofChunks(pass: Pass, given: PassContext, first: string): ChunkedPass {
  const unchanged = { pass, context: given, lines: () => [] }
  if (given.widths.every((width) => width === 1) || sharedRow.isAlone(pass)) return unchanged
  const { index } = pass.loop
  const same = new Set<string>()
  const chunk: AlignedChunk = { index, first: `first ${index}`, place: `place ${index}`, widths: given.widths, same }
  const values: ChunkValue[] = []
  const texts = new Map([
    [chunk.first, first],
    [chunk.place, 'i'],
  ])
  const names = { ...given.names, value: (name: string): string => texts.get(name) ?? given.names.value(name) }
  const context: PassContext = { ...given, names }

  const once = new Map<string, Expr>()
  /** Names the subexpressions that an element always computes, and that depend only on its chunk and memory. */
  const share = (e: Expr): Expr =>
    rewritePaths(e, (node, always) => {
      if (!always || (node.kind !== 'call' && node.kind !== 'load') || !isShared(node, chunk, context)) return undefined
      const known = once.get(hashOf(node))
      if (known !== undefined) return known
      const wanted = node.kind === 'load' ? `${given.names.tensor(node.tensor)}_of_chunk` : 'of_chunk'
      const name = `${wanted} ${index} ${values.length}`
      texts.set(name, given.names.fresh(wanted))
      values.push({ name, value: node })
      const found = local(name, node.type)
      once.set(hashOf(node), found)
      return found
    })
  const folded = (e: Expr): Expr => share(inAlignedChunk(e, chunk))

  const rows: PassRow[] = []
  for (const row of pass.rows) {
    if (row.kind === 'computed' && !row.keep && isOfChunk(row.value, chunk)) {
      values.push({ name: row.name, value: inAlignedChunk(row.value, chunk) })
      same.add(row.name)
    } else rows.push(mapRow(row, folded))
  }
  const statements = pass.statements.map((s) => {
    const statement = passStatementOf(s)
    // Values of a conditional statement are not computed outside of its condition.
    return statement.mapValues(s, statement.isConditional(s) ? (e) => inAlignedChunk(e, chunk) : folded)
  })
  const line = ({ name, value }: ChunkValue, mayBeEmpty: boolean): string => {
    const text = expressionText(value, context)
    const checked = mayBeEmpty && faults(value, given.shared) ? `valid > 0 ? ${text} : 0` : text
    return `const ${scalarText[value.type]} ${names.value(name)} = ${checked};`
  }
  return {
    pass: { ...pass, rows, statements },
    context,
    lines: (mayBeEmpty) => values.map((value) => line(value, mayBeEmpty)),
  }
}

/** True if a folded expression reads memory, and depends on its chunk but not on its element. */
const isShared = (e: Expr, { index, first, place }: AlignedChunk, { shared }: PassContext): boolean =>
  usesIndex(e, first) &&
  faults(e, shared) &&
  !contains(
    e,
    (node) =>
      (node.kind === 'index' && (node.name === index || node.name === place)) ||
      (node.kind === 'element' && !shared?.has(node.row)),
  )
