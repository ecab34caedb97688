/** Instructions of a walk: values, conversions and addresses of its elements, as often as its loops run. */
import { type Instance, resolveDType } from '../ir/instance.js'
import { hasCounts } from '../loop/kernel_loops.js'
import type { MappedKernel } from '../schedule/mapped.js'
import { checksOf } from './chunk_forms.js'
import { accessInstructions, converting, indexInstructions, instructionsOf } from './operations.js'
import type { Sizes } from './sizes.js'
import { product, type Walk, type WalkAccess } from './walk.js'

/** Instructions of single threads that a walk issues. */
export function walkInstructions(walk: Walk, mapped: MappedKernel, sizes: Sizes): number {
  const { instance } = mapped
  const counts = hasCounts(mapped)
  const chunk = Math.max(walk.vec, ...[...walk.reads, ...walk.stores].map(({ vec }) => vec))
  const places = [...walk.reads, ...walk.stores].map((access) => ofAccess(access, instance))
  const [first] = walk.order
  const shared = new Set(
    walk.loops.map(({ index }) => index).filter((index) => index !== first?.index && !walk.serial.includes(index)),
  )
  const loaded = ({ tensor, indices }: Omit<WalkAccess, 'vec'>): number => ofAccess({ tensor, indices, vec: 1 }, instance)
  const values = walk.values.map((value) => instructionsOf(value, sizes, { loaded, shared, once: 1 / chunk, counts }))
  const each = [...places, ...values].reduce(
    (sum, count) => sum + count,
    walk.extra + (walk.perChunk + (counts ? dividing : 0)) / chunk,
  )
  return product(walk.loops) * each
}

/** Instructions of the quotient and the remainder of a chunk's first place, from which others are counted. */
const dividing = 28

/** Instructions of an access for each of its elements: address, access, and conversion of the element. */
function ofAccess({ tensor, indices, vec, form = 'packs', factor = 1 }: WalkAccess, { kernel, types }: Instance): number {
  const found = kernel.tensors.find(({ name }) => name === tensor)
  const conversion = found === undefined ? 0 : converting(resolveDType(found.dtype, types))
  const together = form === 'packs' ? vec : form === 'pairs' ? 2 : 1
  return (accessInstructions + indexInstructions * indices.length) / together + checksOf(form) + conversion * factor
}
