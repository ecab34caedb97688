/** Attention of tokens to another sequence: tiles of queries if there are usually many, and decode attention for few. */
import { beforeAll, expect, it } from 'vitest'
import { memoryLayers } from '../../specs/graphs/encoder_layer.js'
import { plans } from '../../specs/index.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import type { LayoutsByName } from '../../src/fuse/graph/edit.js'
import type { Kernel } from '../../src/ir/kernel.js'

let ops: ReadonlyMap<string, Kernel>
let layouts: LayoutsByName
beforeAll(() => {
  const specs = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  ops = new Map([...specs.kernels, ...specs.standard].map((kernel) => [kernel.name, kernel]))
  layouts = new Map(specs.layouts.map((layout) => [layout.name, layout]))
})

it.each([
  [128, 'attention'],
  [16, 'attention'],
  [15, 'decode attention'],
  [4, 'decode attention'],
] as const)('of usually %d tokens is %s', (s, kind) => {
  const { graph, name } = memoryLayers.gelu
  const plan = plans.find((each) => each.name === 'best-encoder' && each.graph === name)
  if (plan === undefined) throw new Error(`best-encoder has no plan for ${name}`)
  const made = applyPlan({ ...graph, typical: { ...graph.typical, s } }, plan, ops, layouts)
  expect(made.templates.get('attention_memory')?.kind).toBe(kind)
})
