/**
 * In-place updates of one number per row, besides the row's elements: the scale of a row of codes. All threads of the row need the old
 * number, and one of them stores the new one. It is therefore read first, and replaced after a barrier (`waits` of src/schedule/normalise/normal.ts).
 */
import { local } from './build.js'
import type { Expr } from './expr.js'
import type { Kernel, Stmt } from './kernel.js'
import { freshName } from './names.js'
import { UpdateConflict } from './update_conflict.js'
import { introducedNames, mapStmt, rewrite } from './walk.js'

/** Outputs that update one number per row in a kernel that stores rows. */
export function numbersBeside({ body, tensors, rows }: Kernel): ReadonlySet<string> {
  if (rows.length === 0 || body.every(({ kind }) => kind !== 'storeRow')) return new Set()
  const isReplaced = (tensor: string): boolean => tensors.some(({ name, updates }) => name === tensor && updates !== undefined)
  return new Set(body.flatMap((s) => (s.kind === 'store' && s.when === undefined && isReplaced(s.tensor) ? [s.tensor] : [])))
}

/**
 * Hoists the reads of these numbers to the beginning of the kernel.
 * @throws UpdateConflict if the number of another row is read
 */
export function readNumbersFirst(kernel: Kernel, numbers: ReadonlySet<string>): Kernel {
  const { body, tensors, rows, dims, attrs } = kernel
  const taken = new Set([...dims, ...attrs.map(({ name }) => name), ...tensors.map(({ name }) => name)])
  for (const name of [...rows.map(({ index }) => index), ...body.flatMap(introducedNames)]) taken.add(name)
  const outputs = new Map(
    tensors.flatMap(({ name, updates }) => (updates !== undefined && numbers.has(name) ? [[updates, name] as const] : [])),
  )
  const firsts = new Map<string, Stmt & { readonly kind: 'let' }>()
  const read = (e: Expr): Expr => {
    const output = e.kind === 'load' ? outputs.get(e.tensor) : undefined
    if (e.kind !== 'load' || output === undefined) return e
    if (!e.indices.every((at, i) => at.kind === 'index' && at.name === rows[i]?.index))
      throw new UpdateConflict(output, `it reads the number of another row of ${e.tensor} than the one that it replaces`, {
        hint: `leave ${output} out of updates: it then has its own memory`,
      })
    const first = firsts.get(e.tensor) ?? {
      kind: 'let',
      name: freshName(`${e.tensor}_before`, taken),
      type: e.type,
      value: e,
    }
    firsts.set(e.tensor, first)
    return local(first.name, e.type)
  }
  const rest = body.map((s) => mapStmt(s, (e) => rewrite(e, read)))
  return { ...kernel, body: [...firsts.values(), ...rest] }
}
