/**
 * The search without written plans, for every shipped graph with a float plan and usual sizes: its plan never costs more than the one written by
 * hand, although it is given no stack. A rotating third of the graphs.
 */
import { beforeAll, expect, it } from 'vitest'
import { graphs, plans } from '../../specs/index.js'
import { costDevice, leastGain } from '../../src/cost/device.js'
import { priceDims } from '../../src/cost/step.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import type { LayoutsByName } from '../../src/fuse/graph/edit.js'
import type { Kernel } from '../../src/ir/kernel.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { planSeconds, searchPlan } from '../../src/search/auto.js'
import { inTurn } from '../turns.js'

let ops: ReadonlyMap<string, Kernel>
let layouts: LayoutsByName
beforeAll(() => {
  const specs = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  ops = new Map([...specs.kernels, ...specs.standard].map((kernel) => [kernel.name, kernel]))
  layouts = new Map(specs.layouts.map((layout) => [layout.name, layout]))
})

const all = Object.values(graphs).map(({ graph }) => graph)
const byHand = (graph: (typeof all)[number]): readonly PlanDecl[] =>
  plans.filter(
    (plan) => plan.graph === graph.name && plan.auto === undefined && plan.quantised === undefined && plan.library === undefined,
  )

/** Plans of a graph that remove padding alike. */
const cases = all.flatMap((graph) => {
  if (graph.typical === undefined) return []
  const alike = new Map<string, readonly PlanDecl[]>()
  for (const plan of byHand(graph)) {
    const key = JSON.stringify(plan.packed ?? null)
    alike.set(key, [...(alike.get(key) ?? []), plan])
  }
  return [...alike.values()].map((written) => ({ graph, packed: written[0]?.packed, written }))
})

it.each(inTurn(cases).map((each) => [each.graph.name, each.packed === undefined ? 'as it is' : 'packed', each] as const))(
  'the search alone finds no worse plan of %s, %s',
  (name, _, { graph, packed, written }) => {
    const pricing = { device: costDevice('h200'), dims: priceDims(graph, packed), dtype: 'f16' } as const
    const seconds = (plan: PlanDecl): number => planSeconds(graph, plan, ops, pricing, layouts)
    const found = searchPlan('found', graph, { device: 'h200', ops, layouts, packed })
    const best = written.map((plan) => ({ name: plan.name, cost: seconds(plan) })).sort((a, b) => a.cost - b.cost)[0]
    expect(seconds(found), `${name}: ${best?.name}`).toBeLessThanOrEqual((best?.cost ?? 0) + leastGain)
  },
  60_000,
)

it('the plans by hand exist for comparison', () => {
  const names = new Set(cases.map(({ graph }) => graph.name))
  for (const name of ['encoder_layer_gelu', 'decoder_layer_pre_relu', 'llama_step', 'llama_prompt_norm'])
    expect(names).toContain(name)
  expect(cases.flatMap(({ written }) => written.map((plan) => plan.name))).toEqual(
    expect.arrayContaining(['best-encoder', 'best-decoder', 'best-llama', 'ft-v1']),
  )
})
