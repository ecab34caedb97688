/**
 * Derives the rule of a kernel from its facts: the sizes and values it is tested on, and the judgement of its results. Nothing here depends on
 * a kernel's name: facts are stated on ops, inferred from bodies and composed by plans (src/ir/facts), and come with the manifest.
 */
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import { evaluateCount } from '../ir/facts/facts.js'
import { rankedCounts } from '../ir/top_k.js'
import { drawOf } from './domains.js'
import type { OpRule, ResultRule } from './op_rule.js'
import { type Extents, raggedLength } from './ragged.js'
import { type Sequences, sizesOf } from './sizes.js'

type Facts = NonNullable<KernelEntry['facts']>

/** Elements below which the statistics of a random row may be ill-conditioned. */
const steadyRow = 31

/** Facts of a kernel without any: statistics of a row are the worst case. */
const unknown: Facts = { inputs: {}, dims: {}, attrs: {}, results: {}, loops: [] }

/** Integer types so small that any value may be drawn. */
const isSmall: ReadonlySet<DType> = new Set(['u8', 'i16', 'bool'])

/** Number of instances that try each case of a ranking op, which has one instance per count and type. */
export const triedBy = 3
const storageTypes = 3

/**
 * The rule of a kernel instance.
 * @param sequences lengths of packed sequences: differing, or all equal for measurements
 * @throws usage `verify.fact` for an instance that reads integers without a fact about their values
 */
export function ruleOf(entry: KernelEntry, sequences: Sequences = 'ragged'): OpRule {
  const facts = entry.facts ?? unknown
  const inputs = entry.buffers.filter(({ access }) => access === 'in')
  const undeclared = inputs.find(
    ({ name, dtype }) => dtypeInfo[dtype].scalar === 'i32' && !isSmall.has(dtype) && facts.inputs[name] === undefined,
  )
  if (undeclared !== undefined) throw missingFact(entry, undeclared.name)
  const row = rowOf(entry)
  const isAttention = Object.values(facts.results).some((result) => result.class === 'attention')
  const packed = Object.values(facts.inputs).some((domain) => domain.packed !== undefined)
  const places = isAttention && !packed ? facts.loops.filter((dim) => dim !== row && facts.dims[dim]?.upTo === undefined) : []
  const { derived, extents } = sizesOf(entry, facts, sequences, places)
  return {
    results: Object.fromEntries(
      entry.buffers.filter(({ access }) => access === 'out').map(({ name }) => [name, resultRule(facts.results[name])]),
    ),
    normalFrom: Object.values(facts.results).some(({ steep }) => steep) || entry.facts === undefined ? steadyRow : 1,
    combined: (dims, swept) => {
      const reduced = facts.across ?? (facts.loops.includes(row) ? [swept] : facts.loops)
      return (reduced.length === 0 ? [swept] : reduced).reduce((product, dim) => product * (dims[dim] ?? 1), 1)
    },
    derived,
    // Positions of attention's memory, from one to more than all warps of a block process at once: derived from the row's length, but different.
    extents: (given) =>
      extents({ ...given, ...Object.fromEntries(places.map((dim) => [dim, 1 + ((7 * (given[row] ?? 1)) % 83)])) }),
    inputs: Object.fromEntries(
      inputs.flatMap((buffer) => {
        const draw = drawOf(buffer, facts.inputs[buffer.name], sequences)
        return draw === undefined ? [] : [[buffer.name, draw]]
      }),
    ),
    attrs: (dims) => ({ ...statedAttrs(entry, facts, dims), ...sequenceAttrs(entry, facts, sequences, dims) }),
    fills: Object.fromEntries(Object.entries(facts.attrs).map(([attr, { fills }]) => [attr, fills])),
    upTo: Object.fromEntries(Object.entries(facts.dims).flatMap(([dim, { upTo }]) => (upTo === undefined ? [] : [[dim, upTo]]))),
    swept: sweptDims(facts),
    shared: sweptDims(facts) === undefined ? 1 : Math.max(triedBy, Math.ceil((rankedCounts.length * typesOf(entry)) / triedBy)),
  }
}

const missingFact = ({ op }: KernelEntry, input: string) =>
  usageError('verify.fact', `${op} reads integers whose values no fact states: ${input}`, {
    hint: `state it on the op: facts: { ${input}: { index: 'n' } }, or { from: 1, to: 'n' }`,
  })

const typesOf = ({ types }: KernelEntry): number => (Object.keys(types).length === 0 ? 1 : storageTypes)

const sweptDims = ({ dims }: Facts): readonly string[] | undefined => {
  const swept = Object.entries(dims).flatMap(([dim, fact]) => (fact.swept === true ? [dim] : []))
  return swept.length === 0 ? undefined : swept
}

/** The row dimension: the last one of the buffer with the most dimensions. */
export function rowOf({ buffers }: Pick<KernelEntry, 'buffers'>): string {
  const widest = buffers.reduce((best, buffer) => (buffer.dims.length > best.dims.length ? buffer : best))
  return widest.dims.at(-1) ?? ''
}

function resultRule(result: Facts['results'][string] | undefined): ResultRule {
  if (result === undefined)
    return { class: 'reduction', integers: false, length: longest, scale: 1, roots: 0, rounded: undefined }
  const { class: opClass, integers, length, scale = 1, roots = 0, rounded } = result
  return {
    class: opClass,
    integers,
    length: (dims) => (length === undefined ? 1 : (evaluateCount(length, dims) ?? longest(dims))),
    scale,
    roots,
    rounded,
  }
}

const longest = (dims: Extents): number => Math.max(1, ...Object.values(dims))

/** Attributes that are extents which no buffer has, as facts state them. */
function statedAttrs({ attrs }: KernelEntry, facts: Facts, dims: Extents): Record<string, number> {
  const usual = Object.fromEntries(attrs.map((attr) => [attr.name, attr.default]))
  return Object.fromEntries(
    attrs.flatMap(({ name }) => {
      const { equal } = facts.dims[name] ?? {}
      const extent = equal === undefined ? undefined : evaluateCount(equal, { ...usual, ...dims })
      return extent === undefined ? [] : [[name, extent]]
    }),
  )
}

/** Attributes that hold the length of the longest sequence, if no tensor does. */
function sequenceAttrs({ attrs }: KernelEntry, facts: Facts, sequences: Sequences, dims: Extents): Record<string, number> {
  const made: Record<string, number> = {}
  for (const { packed, to = [] } of Object.values(facts.inputs)) {
    if (packed === undefined) continue
    const batch = evaluateCount(packed.batch, dims) ?? 1
    const lengths = Array.from({ length: batch }, (_, i) => (sequences === 'ragged' ? raggedLength(i) : sequences.rows))
    for (const name of [packed.seq, ...to]) {
      if (typeof name === 'string' && attrs.some((attr) => attr.name === name)) made[name] = Math.max(...lengths, 1)
    }
  }
  return made
}
