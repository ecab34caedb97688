/**
 * Planned graphs by numbers of rows in an export. An exported program has one list of steps: where the number of rows is fixed, the plan for it; where
 * it is open, the plan for many rows at every size.
 */
import type { Graph } from '../ir/graph.js'
import { graphAt } from '../ir/graph_rows.js'
import { dimsIn } from '../ir/shape.js'
import { substitute } from '../lang/program/match.js'
import type { GraphApplication } from '../runtime/application.js'

interface Exported {
  readonly applications: readonly GraphApplication[]
  /** Names of the plans for few rows that are left out, since the number of rows is open. */
  readonly left: readonly string[]
}

/** @param fixed sizes of dimensions that no run changes */
export function exported(applications: readonly GraphApplication[], fixed: Readonly<Record<string, number>>): Exported {
  const left = new Set<string>()
  const chosen = applications.map((application) => {
    const { graph, dims = {} } = application
    const { byRows } = graph
    if (byRows === undefined) return application
    const rows = substitute(byRows.rows, dims)
    if (dimsIn([rows]).every((dim) => Object.hasOwn(fixed, dim)))
      return { ...application, graph: graphAt({ ...graph, byRows: { ...byRows, rows } }, fixed) }
    for (const { plan } of byRows.few) left.add(plan)
    return { ...application, graph: manyRows(graph) }
  })
  return { applications: chosen, left: [...left] }
}

const manyRows = ({ byRows: _, ...graph }: Graph): Graph => graph
