/**
 * Verifier of sums that are shifted by a maximum: in each loop over chunks, the largest element is found before the sums are scaled to it, once, and terms
 * are added after that. Part of the verifier of the loop IR.
 */
import { type Accumulator, eachLoop, type Loop } from './ir.js'

/** Steps of a chunk, in order. */
const steps = ['maximum', 'rescale', 'sums', 'combine'] as const

export function verifyShifts(loops: readonly Loop[], fail: (reason: string) => never): void {
  const found = new Map<string, string[]>()
  const note = ({ name, shift }: Accumulator, step: string): void => {
    if ((shift === undefined) !== (step === 'whole'))
      fail(`${name} is ${shift === undefined ? '' : 'not '}taken apart where it is shifted`)
    if (shift !== undefined) found.set(name, [...(found.get(name) ?? []), step])
  }
  eachLoop(loops, (loop) => {
    if (loop.kind === 'accumulate') note(loop.into, loop.part ?? 'whole')
    if (loop.kind === 'rescale') note(loop.accumulator, 'rescale')
    if (loop.kind === 'combine' && loop.across === 'vector' && loop.accumulator.shift !== undefined)
      note(loop.accumulator, 'combine')
  })
  for (const [name, order] of found)
    if (order.join() !== steps.join()) fail(`the sums of ${name} are computed in the order ${order.join(', ')}`)
}
