/** Shrinking: candidates are smaller, and are ops and graphs that can be printed and evaluated. */
import { expect, it } from 'vitest'
import { drawCases } from './data.js'
import { drawOp } from './draw_op.js'
import { runOp } from './evaluate.js'
import { readBy } from './graph_describe.js'
import { printOp } from './print.js'
import { printGraph } from './print_graph.js'
import { seedOf } from './random.js'
import { drawSubject } from './run_graphs.js'
import { shrunk } from './shrink.js'
import { cut, fewer } from './shrink_graph.js'

const drawn = Array.from({ length: 60 }, (_, at) => drawOp(seedOf(3, at), `fuzz_${at}`))

it('an op shrinks to little more than the cause', () => {
  const looked = drawn.filter((op) => printOp(op).includes('erf(') && op.body.length > 0)
  expect(looked.length).toBeGreaterThan(0)
  for (const op of looked) {
    let best = op
    for (;;) {
      const next = shrunk(best).find((each) => printOp(each).includes('erf('))
      if (next === undefined) break
      best = next
    }
    expect(best.outputs).toHaveLength(1)
    expect(best.body.length).toBeLessThanOrEqual(op.body.length)
    expect(printOp(best).length).toBeLessThan(printOp(op).length)
    expect(printOp(best)).toMatch(/erf\((0\.5|\w+\([^()]*\)|\w+)\)/)
  }
})

it('candidates mean something, and are smaller', () => {
  for (const op of drawn.slice(0, 12))
    for (const each of shrunk(op).slice(0, 8)) {
      const [one] = drawCases(each, 1, 2)
      if (one === undefined) throw new Error('an op without a case')
      expect(runOp(each, one.inputs, one.dims).size).toBe(each.outputs.length)
    }
})

it('a graph is cut at a node, and a plan loses groups and nodes', () => {
  const { graph, plans } =
    Array.from({ length: 20 }, (_, at) => drawSubject(1, at, 1)).find(
      ({ plans: [plan] }) => (plan?.groups[0]?.length ?? 0) > 2,
    ) ?? drawSubject(1, 0, 1)
  const [first] = graph.nodes
  if (first === undefined) throw new Error('a graph without nodes')
  const short = cut(graph, first.name)
  expect(short.nodes).toEqual([first])
  expect(short.given.map(({ name }) => name).toSorted()).toEqual([...new Set(readBy(first))].toSorted())
  expect(printGraph(short)).toContain(`outputs: { ${first.name} }`)
  for (const plan of plans)
    for (const each of fewer(plan)) expect(each.groups.flat().length).toBeLessThan(plan.groups.flat().length)
})
