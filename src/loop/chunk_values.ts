/**
 * Values shared by the elements of a chunk: places expressed by the chunk's first element (src/schedule/normalise/aligned.ts), and values that are the same
 * for all elements. The latter, such as a scale of their group or the word they are packed in, are computed once per chunk. Runs when a pass is
 * emitted.
 */
import { local } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { hashOf } from '../ir/expr_hash.js'
import { isFull, type Multiples, noMultiples } from '../schedule/access/multiples.js'
import { passStatementOf } from '../schedule/constructs/index.js'
import { type AlignedChunk, divisorsIn, inAlignedChunk, isOfChunk } from '../schedule/normalise/aligned.js'
import { rowExprs } from '../schedule/normalise/normal.js'
import { mapRow, type Pass, type PassRow, passValues } from '../schedule/normalise/passes.js'
import { contains, rewritePaths, usesIndex } from '../schedule/normalise/rewrite.js'
import { faults } from './faults.js'
import type { Let } from './ir.js'
import type { Frame } from './state.js'

export interface ChunkedPass {
  /** The pass, with elements that read the values computed once per chunk. */
  readonly pass: Pass
  /** Values computed before the elements of a chunk, of which at least one exists unless `mayBeEmpty`. */
  values(mayBeEmpty: boolean): readonly Let[]
}

/** Names of the index of a chunk's first element, and of an element's place in the chunk. */
export const firstOf = (index: string): string => `first ${index}`
export const placeOf = (index: string): string => `place ${index}`

/** Rewrites a pass over chunks that begin at multiples of their widths. Returned unchanged if chunks are single elements. */
export function ofChunks(
  pass: Pass,
  { widths, multiples = noMultiples }: Pick<Frame, 'widths' | 'multiples'>,
  shared: ReadonlySet<string>,
): ChunkedPass {
  if (widths.every((width) => width === 1)) return { pass, values: () => [] }
  const { index } = pass.loop
  const same = new Map<string, string>()
  const chunk: AlignedChunk = {
    index,
    first: firstOf(index),
    place: placeOf(index),
    widths,
    same,
    multiples: statedDivisors(pass, widths, multiples),
  }
  const values: { readonly name: string; readonly value: Expr; readonly of?: { readonly tensor: string | undefined } }[] = []

  const once = new Map<string, Expr>()
  /** Names the subexpressions that an element always computes, and that depend only on its chunk and memory. */
  const share = (e: Expr): Expr =>
    rewritePaths(e, (node, always) => {
      if (!always || (node.kind !== 'call' && node.kind !== 'load') || !isShared(node, chunk, shared)) return undefined
      const known = once.get(hashOf(node))
      if (known !== undefined) return known
      const name = `of chunk ${index} ${values.length}`
      values.push({ name, value: node, of: { tensor: node.kind === 'load' ? node.tensor : undefined } })
      const found = local(name, node.type)
      once.set(hashOf(node), found)
      return found
    })
  const folded = (e: Expr): Expr => share(inAlignedChunk(e, chunk))

  const rows: PassRow[] = []
  for (const row of pass.rows) {
    if (row.kind === 'computed' && !row.keep && isOfChunk(row.value, chunk)) {
      values.push({ name: row.name, value: inAlignedChunk(row.value, chunk) })
      same.set(row.name, row.name)
    } else rows.push(mapRow(row, folded))
  }
  const statements = pass.statements.map((s) => {
    const statement = passStatementOf(s)
    // Values of a conditional statement are not computed outside of its condition.
    return statement.mapValues(s, statement.isConditional(s) ? (e) => inAlignedChunk(e, chunk) : folded)
  })
  return {
    pass: { ...pass, rows, statements },
    values: (mayBeEmpty) =>
      values.map(({ name, value, of }) => ({
        kind: 'let',
        name,
        type: value.type,
        value,
        ofChunk: { ...of, named: of === undefined, masked: mayBeEmpty && faults(value, shared) },
      })),
  }
}

/** Hashes of run-time numbers that elements divide their index by, as far as facts state that every width divides them. */
function statedDivisors(pass: Pass, widths: readonly number[], multiples: Multiples): ReadonlySet<string> {
  if (multiples.size === 0) return new Set()
  const divisors = [...pass.rows.flatMap(rowExprs), ...passValues(pass)].flatMap((value) => divisorsIn(value, pass.loop.index))
  return new Set(divisors.filter((divisor) => isFull(divisor, widths, multiples)).map(hashOf))
}

/**
 * True if a folded expression reads memory, and depends on its chunk but not on its element.
 * @param known scalars of the chunk
 */
export const isShared = (
  e: Expr,
  { index, first, place }: AlignedChunk,
  shared: ReadonlySet<string>,
  known: ReadonlySet<string> = new Set(),
): boolean =>
  (usesIndex(e, first) || contains(e, (node) => node.kind === 'local' && known.has(node.name))) &&
  faults(e, shared) &&
  !contains(
    e,
    (node) =>
      (node.kind === 'index' && (node.name === index || node.name === place)) ||
      (node.kind === 'element' && !shared.has(node.row)),
  )
