/** Calibration sites of values that become int8 between two graphs. */
import type { Application, Program, ProgramValueId } from '../ir/program.js'
import type { ScaleAttr } from './compiled.js'
import { makerOf, nameOf, type PlanGraphs } from './plan_graphs.js'

type Site = Pick<ScaleAttr, 'at' | 'site'>

/** Calibration site of a value: in the first graph that reads it as int8, else in the graph that computes it; undefined if no graph quantises it. */
export function scaleSite({ nodes }: Program, graphs: PlanGraphs, id: ProgramValueId): Site | undefined {
  const applications = nodes.flatMap((node) => (node.kind === 'application' ? [node] : []))
  const taken = applications.flatMap((application) => known(graphs, application, nameOf(application.inputs, id)))
  const given = applications.flatMap((application) => {
    const output = nameOf(application.outputs, id)
    const maker = output === undefined ? undefined : makerOf(application.graph, application.graph.outputs[output])
    return known(graphs, application, maker)
  })
  return [...taken, ...given][0]
}

/** Calibration site of a value that an application reads or computes, if its graph has a scale for it. */
function known(graphs: PlanGraphs, { label, graph }: Application, site: string | undefined): readonly Site[] {
  const isScaled = Object.values(graphs.planned(graph).scales ?? {}).some((scale) => scale.site === site)
  return site !== undefined && isScaled ? [{ at: label, site }] : []
}
