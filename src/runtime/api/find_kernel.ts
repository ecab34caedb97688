/**
 * Finds the kernel of a call: the instance of the op for its storage types, and for its extents if instances have fixed ones. An instance is
 * checked against the given declaration, so that a kernel generated from another declaration is not launched for it.
 */
import type { KernelEntry } from '../../emit/manifest/manifest.js'
import { type ErrorDetails, environmentError, usageError } from '../../errors.js'
import { type DType, isDType } from '../../ir/dtype.js'
import { namesOf } from '../../ir/facts/facts.js'
import { instanceKey } from '../../ir/instance.js'
import { kernelName } from '../../ir/op_name.js'
import { rankedCounts } from '../../ir/top_k.js'
import { dimFactsOf } from '../../lang/dim_facts.js'
import type { AnyOp } from './call_types.js'
import type { CheckedCall } from './check_call.js'

/** Manifest entries of kernels, by the names of their ops. */
export type KernelEntries = ReadonlyMap<string, readonly KernelEntry[]>

export function entriesByOp(kernels: readonly KernelEntry[]): KernelEntries {
  const byOp = new Map<string, KernelEntry[]>()
  for (const entry of kernels) byOp.set(entry.op, [...(byOp.get(entry.op) ?? []), entry])
  return byOp
}

export interface FoundKernel {
  readonly entry: KernelEntry
  /** Extents in the order of the entry. */
  readonly dims: readonly number[]
  readonly attrs: readonly number[]
}

const genHint = 'export it below specs/, then run heddle gen: kernels are compiled at the first call'

/**
 * @param isShipped true for a kernel of the package: a generated kernel of the caller's own replaces it
 * @throws environment `call.kernel` if no instance was generated for the storage types, or none of the caller's own op; usage `call.extent` if
 * none was generated for the extents, `call.stale` if the instance was generated from another declaration, `call.attrs` for a fraction where an
 * integer is expected
 */
export function findKernel(
  entries: KernelEntries,
  { op, types, dims, attrs }: CheckedCall,
  isShipped: (key: string) => boolean = () => false,
): FoundKernel {
  const name = kernelName(op.name)
  const all = entries.get(name) ?? []
  const ofOwn = all.filter(({ key }) => !isShipped(key))
  const typed = all.filter((entry) => sameTypes(entry.types, types))
  if (typed.length === 0) throw noKernel(op, name, types, ofOwn)
  // The instance with the most fixed dimensions that fit comes first.
  const ordered = typed.toSorted((a, b) => Object.keys(b.fixedDims).length - Object.keys(a.fixedDims).length)
  const entry = ordered.find(({ fixedDims }) => Object.entries(fixedDims).every(([dim, extent]) => dims[dim] === extent))
  if (entry === undefined) throw noExtent(op, typed, dims)
  const difference = differenceOf(op, types, entry)
  if (difference !== undefined && isShipped(entry.key)) {
    const found = `${entry.key} belongs to the shipped ${op.name}: ${difference}`
    throw environmentError('call.kernel', `no kernel was generated for your own ${op.name}; ${found}`, { hint: genHint })
  }
  if (difference !== undefined) {
    throw usageError('call.stale', `kernel ${entry.key} was generated from another declaration of ${op.name}: ${difference}`, {
      hint: 'run heddle gen: the kernel is compiled at the first call; two ops of one name cannot both be generated',
    })
  }
  return {
    entry,
    dims: entry.dims.map((dim) => dims[dim] ?? 0),
    attrs: entry.attrs.map((attr) => {
      const value = attrs[attr.name] ?? attr.default
      if (attr.type === 'i32' && !(Number.isInteger(value) && Math.abs(value) < 2 ** 31)) {
        throw usageError('call.attrs', `${op.name}: attribute ${attr.name}: expected an int32, got ${value}`)
      }
      return value
    }),
  }
}

const sameTypes = (a: Readonly<Record<string, DType>>, b: Readonly<Record<string, DType>>): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([param, dtype]) => b[param] === dtype)

function noKernel(op: AnyOp, name: string, types: Readonly<Record<string, DType>>, all: readonly KernelEntry[]) {
  const key = instanceKey(name, types)
  const details: ErrorDetails = {
    hint: all.length === 0 ? genHint : `there are ${[...new Set(all.map((entry) => entry.key))].join(', ')}`,
  }
  return environmentError('call.kernel', `no kernel ${key} was generated for ${op.name}`, details)
}

function noExtent(op: AnyOp, typed: readonly KernelEntry[], dims: Readonly<Record<string, number>>) {
  const fixed = [...new Set(typed.flatMap(({ fixedDims }) => Object.keys(fixedDims)))]
  const [dim, ...more] = fixed.filter((name) => typed.every(({ fixedDims }) => fixedDims[name] !== dims[name]))
  if (dim === undefined) {
    const sizes = (of: Readonly<Record<string, number>>): string => fixed.map((name) => `${name}=${of[name]}`).join(' ')
    return usageError('call.extent', `${op.name}: no kernel is compiled for ${sizes(dims)}`, {
      hint: `there are kernels for ${typed.map(({ fixedDims }) => sizes(fixedDims)).join(', ')}`,
    })
  }
  const allowed = [...new Set(typed.flatMap(({ fixedDims }) => fixedDims[dim] ?? []))].sort((a, b) => a - b)
  const also = more.length === 0 ? '' : ` (and ${more.join(', ')})`
  return usageError(
    'call.extent',
    `${op.name}: dimension ${dim}${also} is ${dims[dim]}, its kernels are compiled for ${allowed.join(', ')}`,
    { hint: extentHint(dims[dim] ?? 0, allowed) },
  )
}

/** Hint for an extent without a kernel. A ranked dimension is recognised by its compiled sizes. */
function extentHint(extent: number, allowed: readonly number[]): string {
  const next = allowed.find((size) => size > extent)
  const larger = next === undefined ? `use at most ${allowed.at(-1)}` : `use ${next} and ignore the rest`
  if (allowed.join() !== rankedCounts.join()) return larger
  return `${larger}, or write the number itself into the body, topK(${Math.min(extent, 64)}, ...): a number may be 1 to 64`
}

/** Describes the differences between a declaration and that of a kernel, as far as the manifest records it; undefined without any. */
function differenceOf(
  op: AnyOp,
  types: Readonly<Record<string, DType>>,
  { buffers, dims, attrs }: KernelEntry,
): string | undefined {
  const tensors = [...Object.entries(op.inputs), ...Object.entries(op.outputs)]
  const inputs = Object.keys(op.inputs).length
  const declared = tensors.map(([name, { type, dims: axes, layout }], i) => {
    const access = i < inputs ? 'in' : 'out'
    const updates = access === 'out' ? op.updates[name] : undefined
    return tensorText({
      name,
      access,
      dtype: isDType(type) ? type : (types[type] ?? type),
      dims: axes,
      layout: layout?.name ?? 'row',
      updates,
    })
  })
  const generated = buffers.map((buffer) => tensorText({ ...buffer, dims: buffer.dims.join(' ') }))
  return (
    firstDifference('tensors', declared, generated) ??
    firstDifference('dimensions', dimsOf(op, dims), dims) ??
    firstDifference(
      'attributes',
      Object.entries(op.attrs).map(([name, value]) => `${name} = ${Math.fround(value)}`),
      attrs.map((attr) => `${attr.name} = ${Math.fround(attr.default)}`),
    )
  )
}

/** Dimensions of a declaration, without those that only its facts name: no kernel has these. */
function dimsOf(op: AnyOp, ofKernel: readonly string[]): readonly string[] {
  const ofFacts = new Set(Object.values(dimFactsOf(op)).flatMap(({ equal }) => (equal === undefined ? [] : namesOf(equal))))
  const ofTensors = new Set([...Object.values(op.inputs), ...Object.values(op.outputs)].flatMap(({ dims }) => dims.split(' ')))
  return op.dims.filter((dim) => ofKernel.includes(dim) || ofTensors.has(dim) || !ofFacts.has(dim))
}

interface TensorWords {
  readonly name: string
  readonly access: string
  readonly dtype: string
  readonly dims: string
  readonly layout: string
  readonly updates?: string | undefined
}

const tensorText = ({ name, access, dtype, dims, layout, updates }: TensorWords): string =>
  `${access} ${name}: ${dtype} "${dims}"${layout === 'row' ? '' : ` in layout ${layout}`}${updates === undefined ? '' : ` that updates ${updates}`}`

function firstDifference(what: string, declared: readonly string[], generated: readonly string[]): string | undefined {
  const at = Array.from({ length: Math.max(declared.length, generated.length) }, (_, i) => i).find(
    (i) => declared[i] !== generated[i],
  )
  return at === undefined
    ? undefined
    : `of its ${what}, the declaration has ${declared[at] ?? 'none'} where the kernel has ${generated[at] ?? 'none'}`
}
