/** Encoder layers under a mask over pairs: every plan supports them, with the same launches as for lengths. */
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { encoderLayers, pairLayers } from '../../specs/graphs/encoder_layers.js'
import { readManifest } from '../../src/cli/pipeline.js'
import type { Graph } from '../../src/ir/graph.js'

const { plans = {} } = await readManifest(fileURLToPath(new URL('../..', import.meta.url)))

/** Launches of a planned graph, in order. */
const launches = ({ nodes }: Graph): string[] =>
  nodes.flatMap((node) => (node.kind === 'op' ? [node.op] : node.kind === 'matmul' ? [node.generated ?? 'matmul'] : []))

const pairs = (['post', 'pre'] as const).flatMap((norms) =>
  Object.values(encoderLayers[norms]).map(({ name }, at) => [name, Object.values(pairLayers[norms])[at]?.name ?? ''] as const),
)

/** Encoder-decoder models, whose sources have no mask. */
const withoutMask = ['best-decoder']

it.each(Object.keys(plans).filter((plan) => !withoutMask.includes(plan)))('%s has as many launches under a mask', (plan) => {
  const graphs = plans[plan] ?? {}
  for (const [lengths, masked] of pairs) {
    const [one, other] = [graphs[lengths], graphs[masked]]
    expect(other === undefined, masked).toBe(one === undefined)
    if (one === undefined || other === undefined) continue
    const [usual, found] = [launches(one), launches(other)]
    expect(found).toHaveLength(usual.length)
    const differ = found.filter((kernel, at) => kernel !== usual[at])
    expect(differ).toEqual([expect.stringContaining('_pairs')])
  }
})
