/**
 * Requests of vectors, such as a weight, that are the same for every row: lines of the L2 cache that are prefetched before the kernel waits for the
 * previous one. Weights of a model are too many to stay in the cache from one pass to the next, so that each launch would wait for DRAM after its
 * predecessor has ended. A prefetch needs no proof that nobody writes the vector: the L2 cache is coherent.
 */
import type { Expr } from '../../ir/expr.js'
import { contains } from '../../schedule/normalise/rewrite.js'
import { isOneRun, startOf, type Tensors } from '../access.js'
import { type Copy, eachLoop, type Loop, type Request } from '../ir.js'

export function requestVectors(loops: readonly Loop[], tensors: Tensors): readonly Loop[] {
  const requests = new Map<string, Request>()
  eachLoop(loops, (loop) => {
    const copy = loop.kind === 'copy' ? loop : loop.kind === 'prefetch' ? loop.copy : undefined
    if (copy === undefined || !isVector(copy, tensors)) return
    const { tensor } = copy.access
    requests.set(tensor, { kind: 'request', tensor, length: copy.length })
  })
  return [...requests.values(), ...loops]
}

/** True if a copy reads the first elements of a tensor, as many as the launch knows. */
const isVector = ({ access, length }: Copy, tensors: Tensors): boolean =>
  isOneRun(access) && startOf(access, tensors) === undefined && !contains(length, isComputed)

const isComputed = ({ kind }: Expr): boolean => kind === 'local' || kind === 'load' || kind === 'index'
