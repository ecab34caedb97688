/** Spans of a pass: rows of elements beside each other's places, which one load brings. Used by lowering and by prices. */
import type { PassRow } from '../schedule/normalise/passes.js'
import { sameExpr } from '../schedule/normalise/rewrite.js'
import type { Span } from './ir.js'

export type Loaded = PassRow & { readonly kind: 'loaded' }

/** Spans of rows that are loaded beside each other's places, under one guard. */
export function spansOf(rows: readonly Loaded[]): readonly { readonly row: Loaded; readonly span: Span }[] {
  const found: { readonly row: Loaded; readonly all: Loaded[] }[] = []
  for (const row of rows) {
    if (row.shift === undefined) continue
    const isSame = ({ load, guard }: Loaded): boolean =>
      sameExpr(load, row.load) &&
      (guard === undefined || row.guard === undefined ? guard === row.guard : sameExpr(guard, row.guard))
    const known = found.find((each) => isSame(each.row))
    if (known === undefined) found.push({ row, all: [row] })
    else known.all.push(row)
  }
  return found.map(({ row, all }) => {
    const named = all.map(({ name, shift = 0 }) => ({ row: name, shift }))
    const shifts = named.map(({ shift }) => shift)
    return { row, span: { before: Math.max(0, -Math.min(...shifts)), after: Math.max(0, ...shifts), rows: named } }
  })
}
