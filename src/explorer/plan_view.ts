/** Layout of plans as drawings: one box per step in dependency order, and one line per pair of connected steps. */
import dagre from '@dagrejs/dagre'
import type { PlanEdge, PlanReport, PlanStep } from '../search/explain.js'
import type { DrawnPlan, Edge } from './model.js'

/** Pixel sizes: height of a text line, height around the node names in a box, width of a letter of a kernel's name, width of the time. */
const [lineHeight, around, letter, time] = [18, 62, 8, 96]
const [narrowest, widest] = [200, 340]
/** Largest number of node names in a box; the panel next to the drawing lists all of them. */
const mostLines = 3

/** Number of lines in a box below its title and bar. */
const linesOf = ({ nodes }: PlanStep): number => Math.min(mostLines, nodes.length)

const heightOf = (step: PlanStep): number => around + lineHeight * linesOf(step)

interface Line extends PlanEdge {
  readonly from: number
  readonly to: number
}

/** One line per pair of steps: all values between them have the same verdict. */
function linesBetween({ steps, edges }: PlanReport): Line[] {
  const stepOf = (node: string): number => steps.findIndex(({ nodes }) => nodes.includes(node))
  const seen = new Set<string>()
  return edges.flatMap((edge): Line[] => {
    const [from, to] = [stepOf(edge.producer), stepOf(edge.consumer)]
    const key = `${from} ${to}`
    if (from < 0 || to < 0 || from === to || seen.has(key)) return []
    seen.add(key)
    return [{ ...edge, from, to }]
  })
}

/** @param measured microseconds of one launch, by the names of a plan's kernels */
export function drawPlan(report: PlanReport, measured: ReadonlyMap<string, number> = new Map()): DrawnPlan {
  const { plan, steps, totals } = report
  const lines = linesBetween(report)
  const longest = Math.max(0, ...steps.map(({ kernel }) => kernel.length))
  const width = Math.min(widest, Math.max(narrowest, letter * longest + time))
  const drawing = new dagre.graphlib.Graph()
  drawing.setGraph({ rankdir: 'TB', nodesep: 20, ranksep: 34, marginx: 4, marginy: 4 })
  drawing.setDefaultEdgeLabel(() => ({}))
  for (const [i, step] of steps.entries()) drawing.setNode(String(i), { width, height: heightOf(step) })
  for (const { from, to } of lines) drawing.setEdge(String(from), String(to))
  dagre.layout(drawing)
  const boxes = steps.map((step, i) => {
    const { x, y } = drawing.node(String(i))
    const height = heightOf(step)
    const { kind, kernel, nodes, covers, bytesRead, bytesWritten, flops, rereads, microseconds } = step
    const known = measured.get(kernel)
    return {
      x: (x ?? 0) - width / 2,
      y: (y ?? 0) - height / 2,
      width,
      height,
      kind,
      kernel,
      nodes: [...nodes],
      covers: [...covers],
      bytes: bytesRead + bytesWritten,
      flops,
      rereads,
      microseconds,
      ...(known === undefined ? {} : { measured: known }),
    }
  })
  const edges = lines.map(({ from, to, producer, consumer, legal, gain, reason }): Edge => {
    const points = drawing.edge(String(from), String(to)).points ?? []
    return {
      from,
      to,
      points: points.map(({ x, y }: { readonly x: number; readonly y: number }) => ({ x, y })),
      producer,
      consumer,
      legal,
      reason,
      ...(gain === undefined ? {} : { gain }),
    }
  })
  const { launches, bytes, flops, microseconds } = totals
  const { width: wide = 0, height: high = 0 } = drawing.graph()
  return { name: plan, width: wide, height: high, launches, bytes, flops, microseconds, boxes, edges }
}
