/** Rules for the loops of a kernel as a whole: names are declared once, offsets are multiples where they are taken for such, reductions are combined once. */
import type { Expr } from '../ir/expr.js'
import { type Accumulator, eachLoop, type Loop } from './ir.js'
import { isMultiple } from './passes/version.js'

type Fail = (reason: string) => never

/** Checks that each name is declared once. */
export function verifyDeclarations(loops: readonly Loop[], fail: Fail): void {
  const declared = new Set<string>()
  eachLoop(loops, (loop) => {
    // Registers and values of a chunk are declared in each loop that uses them.
    if (!('name' in loop) || loop.kind === 'buffer' || (loop.kind === 'let' && loop.ofChunk !== undefined)) return
    if (declared.has(loop.name)) fail(`${loop.name} is declared twice`)
    declared.add(loop.name)
  })
}

/** Checks that offsets taken for multiples of a length are. */
export function verifyMultiples(loops: readonly Loop[], fail: Fail): void {
  const offsets = new Map<string, Expr>()
  eachLoop(loops, (loop) => {
    if (loop.kind === 'offset') offsets.set(loop.name, loop.value)
    if (loop.kind !== 'version') return
    for (const name of loop.multiples) {
      const value = offsets.get(name)
      if (
        value === undefined ||
        ![...loop.lengths, ...loop.stated].some((length) => length !== undefined && isMultiple(value, length))
      )
        fail('a row is taken for aligned that may not be')
    }
  })
}

/** Checks that reductions are combined once across the elements of every chunk, unless each element has one, and once across lanes. */
export function verifyCombines(loops: readonly Loop[], fail: Fail): void {
  const counts = new Map<string, { vector: number; lane: number; of: string | undefined; vectors: 0 | 1 }>()
  const count = ({ name }: Accumulator, across: 'vector' | 'lane'): void => {
    const known = counts.get(name) ?? fail('an accumulator is combined before it is declared')
    known[across]++
  }
  eachLoop(loops, (loop) => {
    if (loop.kind === 'accumulator')
      counts.set(loop.name, { vector: 0, lane: 0, of: loop.of, vectors: loop.scan || loop.columns === true ? 0 : 1 })
    if (loop.kind === 'combine') count(loop.accumulator, loop.across)
    if (loop.kind === 'exchange') for (const { accumulator } of loop.parts) count(accumulator, 'lane')
  })
  for (const { vector, lane, of, vectors } of counts.values())
    if (lane !== 1 || vector !== vectors)
      fail(`${of ?? 'a reduction'} is combined ${lane} times across lanes and ${vector} times across elements`)
}
