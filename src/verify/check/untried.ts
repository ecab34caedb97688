/**
 * Explains why a missing fact prevented all tests of a kernel, a graph or a program: nothing was run, so it has not failed. Used
 * by `check` if a group ends before its first comparison.
 */
import { HeddleError } from '../../errors.js'
import { unstatedRelations } from '../../ir/facts/relations.js'
import type { Graph } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'

/** Codes of errors without a size or value to try. */
const noFact: ReadonlySet<string> = new Set(['check.untried', 'verify.fact'])

const placeOf = ({ source: { file, line } }: Kernel): string => `${file}:${line}`

const rankOf = ({ tensors }: Kernel, tensor: string): number | undefined =>
  tensors.find(({ name }) => name === tensor)?.dims.length

/** The ops of a graph's nodes. */
export const opsOf = ({ nodes }: Pick<Graph, 'nodes'>, ops: ReadonlyMap<string, Kernel>): readonly Kernel[] =>
  nodes.flatMap((node) => (node.kind === 'op' ? (ops.get(node.op) ?? []) : []))

/**
 * The missing fact; undefined if a group was not run for another reason.
 * @param own the kernel under test, if it is a single one
 * @param ops of the project, or of the graph under test
 */
export function whyUntried(error: unknown, own: Kernel | undefined, ops: readonly Kernel[]): string | undefined {
  if (!(error instanceof HeddleError)) return undefined
  const hint = error.hint === undefined || error.message.endsWith(error.hint) ? '' : `; ${error.hint}`
  const at = own === undefined ? '' : `${placeOf(own)}: `
  if (noFact.has(error.code)) return `${at}${error.message}${hint}`
  if (error.code !== 'evaluate.bounds' || error.hint !== undefined) return undefined
  const [, tensor, places = ''] = /^(\w+)\[([^\]]*)\]/.exec(error.message) ?? []
  const rank = places.split(',').length
  const [first] = ops
    .filter((kernel) => tensor !== undefined && rankOf(kernel, tensor) === rank)
    .flatMap((kernel) =>
      unstatedRelations(kernel).flatMap((relation) => (relation.tensor === tensor ? [{ kernel, relation }] : [])),
    )
  if (first === undefined) return undefined
  const { kernel, relation } = first
  return (
    `${placeOf(kernel)}: ${error.message}: ${kernel.name} reads ${relation.tensor} as if ${relation.dim} were ${relation.size}, ` +
    `which no fact says; state it on the op: facts: { ${relation.dim}: ${relation.fact} }`
  )
}
