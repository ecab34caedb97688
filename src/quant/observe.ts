/**
 * Observers: a layer's graph with additional outputs for the maxima and distributions of its activations. The original outputs are
 * unchanged. Activations stay on the device; only a maximum and a row of counts per site leave it.
 */
import { absMax, channelMax, columnSum, magnitudeHistogram } from '../../specs/ops/calibration.js'
import { type Graph, type GraphNode, outputsOf, type ScaleFolding, type ValueId } from '../ir/graph.js'
import { printShape } from '../ir/shape.js'
import { GraphBuilder, type GraphTensor } from '../lang/graph.js'
import { type Site, siteRows } from './sites.js'

/** Name of the dimension of counts. */
export const binsDim = 'bins'

/** Observes the largest magnitude of each site, float32 of one element: the output `x.max` of site `x`. */
export const observeMaxima = (graph: Graph, sites: readonly Site[]): Graph =>
  observe(graph, sites, 'max', (builder, rows, site) => {
    const ofRows = builder.apply(absMax, { x: rows }).y
    const [extent = ''] = siteRows[site].split(' ')
    return builder.apply(absMax, { x: builder.view(ofRows, `1 ${extent}`) }).y
  })

/** Counts the magnitudes of each site in bins, `scaleOf(site)` bins per unit: i32 of `bins`, the output `x.counts` of site `x`. */
export const observeHistograms = (graph: Graph, sites: readonly Site[], scaleOf: (site: Site) => number): Graph =>
  observe(graph, sites, 'counts', (builder, rows, site) => {
    const ofRows = builder.apply(magnitudeHistogram, { x: rows }, { scale: scaleOf(site) }, { bins: binsDim }).counts
    return builder.apply(columnSum, { x: ofRows }).y
  })

/** Observes the largest magnitude of every channel of the values with scale folding: float32, the output `x.channels` of node `x`. */
export function observeChannels(graph: Graph, foldings: readonly ScaleFolding[]): Graph {
  const builder = new GraphBuilder()
  builder.values.push(...graph.values)
  builder.nodes.push(...graph.nodes)
  const outputs: Record<string, number> = { ...graph.outputs }
  for (const { value, shape } of foldings) {
    const node = graph.nodes.find(({ name }) => name === value)
    const [id] = node === undefined ? [] : outputsOf(node)
    if (id === undefined) throw new Error(`internal: graph ${graph.name} has no node ${value}`)
    const known = builder.nodes.length
    const name = channelsOf(value)
    outputs[name] = builder.apply(channelMax, { x: builder.view(builder.adopt(id), printShape(shape)) }).y.value
    const made = builder.nodes.splice(known)
    builder.nodes.push(...made.map((each, i): GraphNode => ({ ...each, name: `${name}${i}` })))
  }
  return { ...graph, values: builder.values, nodes: builder.nodes, outputs }
}

/** Name of the output that observes the channels of a node. */
export const channelsOf = (value: string): string => `${value}.channels`

/** Extends a graph with the output of `measure` for each site's rows. */
function observe(
  graph: Graph,
  sites: readonly Site[],
  what: 'max' | 'counts',
  measure: (builder: GraphBuilder, rows: GraphTensor, site: Site) => GraphTensor,
): Graph {
  const builder = new GraphBuilder()
  builder.values.push(...graph.values)
  builder.nodes.push(...graph.nodes)
  const outputs: Record<string, number> = { ...graph.outputs }
  for (const site of sites) {
    const known = builder.nodes.length
    const rows = builder.view(builder.adopt(siteValue(graph, site)), siteRows[site])
    outputs[`${site}.${what}`] = measure(builder, rows, site).value
    const made = builder.nodes.splice(known)
    builder.nodes.push(...made.map((node, i): GraphNode => ({ ...node, name: `${site}.${what}${i}` })))
  }
  return { ...graph, values: builder.values, nodes: builder.nodes, outputs }
}

/** The value of a site: a graph input, or the output of the node of its name. */
function siteValue(graph: Graph, site: Site): ValueId {
  const node = graph.nodes.find(({ name }) => name === site)
  const value = graph.inputs[site] ?? (node === undefined ? undefined : outputsOf(node)[0])
  if (value === undefined) throw new Error(`internal: graph ${graph.name} has no value ${site}`)
  return value
}
