/**
 * Collection of histograms: the float model runs over the cases twice, once for the largest magnitude of every site and once to count
 * its magnitudes in bins up to that. Every case runs alone and at its own length, so that no padding is counted.
 */
import { usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import type { Graph } from '../ir/graph.js'
import { decode } from '../runtime/buffer.js'
import { buildProgram, type GraphApplication } from '../runtime/program.js'
import type { Session } from '../runtime/session.js'
import { binScale, defaultBins, type Histogram } from './histogram.js'
import { binsDim, observeHistograms, observeMaxima } from './observe.js'
import { type PerSite, perSite, type Site, sites } from './sites.js'

/** A sequence of tokens, and their types if they have any. */
export interface CalibrationCase {
  readonly inputIds: readonly number[]
  readonly typeIds?: readonly number[] | undefined
  /** One byte per query and key, row by row: 1 if the query attends to the key. All attend to all if undefined. */
  readonly pairs?: Uint8Array | undefined
}

/** A model to collect histograms from. */
export interface CalibrationModel {
  readonly session: Session
  /** The model's graphs, unfused: one node per primitive. */
  readonly applications: readonly GraphApplication[]
  /** Labels of the applications that are encoder layers, in order. */
  readonly layers: readonly string[]
  /** Placement of the layers' norms. */
  readonly norms: 'post' | 'pre'
  /** Names of the values that `feed` supplies. */
  readonly inputs: readonly string[]
  readonly types: Readonly<Record<string, DType>>
  /** Extents for one case of `length` tokens. */
  dims(length: number): Readonly<Record<string, number>>
  /** The inputs of one case. */
  feed(tokens: CalibrationCase): Readonly<Record<string, Uint8Array>>
}

export interface CollectOptions {
  readonly bins?: number
  readonly signal?: AbortSignal | undefined
  /** Called after each case of both passes. */
  readonly progress?: (done: number, total: number, pass: 'maxima' | 'histograms') => void
}

/** Magnitudes from this value on represent values that are not finite; see `specs/ops/calibration.ts`. */
const notFinite = 2.9e38

type Outputs = Readonly<Record<string, Uint8Array>>

/** Observed sites of a layer. In post-norm models, a layer's input is the output of the layer before and is not observed again. */
const observedSites = ({ norms }: CalibrationModel, layer: number): readonly Site[] =>
  layer === 0 || norms === 'pre' ? sites : sites.filter((site) => site !== 'x')

/**
 * Collects the histograms of every layer and site over all cases.
 * @throws usage `calibrate.cases` without a case, `calibrate.finite` naming layer and site for activations that are not finite; the
 * signal's reason when it aborts
 */
export async function collect(
  model: CalibrationModel,
  cases: readonly CalibrationCase[],
  { bins = defaultBins, signal, progress }: CollectOptions = {},
): Promise<PerSite<Histogram>[]> {
  if (cases.length === 0) throw usageError('calibrate.cases', 'got no cases, expected at least one')
  const total = 2 * cases.length
  const maxima = model.layers.map(() => new Map<Site, number>())
  let done = 0
  const watch = (graph: Graph, layer: number): Graph => observeMaxima(graph, observedSites(model, layer))
  await runAll(model, cases, { watch, what: 'max', dims: {}, signal }, (outputs) => {
    each(model, 'max', (name, layer, site) => {
      const found = decode('f32', outputs[name] ?? new Uint8Array())[0] ?? 0
      if (found >= notFinite) throw notFiniteAt(layer, site, model)
      maxima[layer]?.set(site, Math.max(found, maxima[layer]?.get(site) ?? 0))
    })
    progress?.(++done, total, 'maxima')
  })

  const histograms = maxima.map((layer) => {
    const empty = ([site, amax]: [Site, number]): [Site, Histogram] => [site, { amax, counts: new Float64Array(bins) }]
    return new Map([...layer].map(empty))
  })
  const count = (graph: Graph, layer: number): Graph =>
    observeHistograms(graph, observedSites(model, layer), (site) => binScale(maxima[layer]?.get(site) ?? 0, bins))
  await runAll(model, cases, { watch: count, what: 'counts', dims: { [binsDim]: bins }, signal }, (outputs) => {
    each(model, 'counts', (name, layer, site) => {
      const counts = histograms[layer]?.get(site)?.counts
      for (const [bin, found] of decode('i32', outputs[name] ?? new Uint8Array()).entries()) {
        if (counts !== undefined) counts[bin] = (counts[bin] ?? 0) + found
      }
    })
    progress?.(++done, total, 'histograms')
  })
  return histograms.map((_, layer) => perSite((site) => histogramOf(histograms, layer, site)))
}

/** A site's histogram; an unobserved layer input has that of the previous layer's output. */
function histogramOf(layers: readonly ReadonlyMap<Site, Histogram>[], layer: number, site: Site): Histogram {
  const found = layers[layer]?.get(site) ?? layers[layer - 1]?.get('outputNorm')
  if (found === undefined) throw new Error(`internal: layer ${layer} has no histogram of ${site}`)
  return found
}

const notFiniteAt = (layer: number, site: Site, { types }: CalibrationModel) =>
  usageError('calibrate.finite', `layer ${layer}, ${site}: an activation is not finite in ${types.T ?? 'its storage type'}`, {
    hint: 'calibrate with --dtype f32; if it happens there too, the weights are wrong',
  })

interface Watching {
  /** The graph of a layer with its observers. */
  readonly watch: (graph: Graph, layer: number) => Graph
  readonly what: 'max' | 'counts'
  readonly dims: Readonly<Record<string, number>>
  readonly signal: AbortSignal | undefined
}

const outputName = (label: string, site: Site, what: Watching['what']): string => `${label}.${site}.${what}`

/** Visits every observed output. */
function each(model: CalibrationModel, what: Watching['what'], see: (name: string, layer: number, site: Site) => void): void {
  for (const [layer, label] of model.layers.entries()) {
    for (const site of observedSites(model, layer)) see(outputName(label, site, what), layer, site)
  }
}

/** Runs every case. Cases of equal length run consecutively and share a program. */
async function runAll(
  model: CalibrationModel,
  cases: readonly CalibrationCase[],
  watching: Watching,
  see: (outputs: Outputs) => void,
): Promise<void> {
  const lengths = [...new Set(cases.map(({ inputIds }) => inputIds.length))].sort((a, b) => a - b)
  const applications = observed(model, watching)
  const outputs: string[] = []
  each(model, watching.what, (name) => outputs.push(name))
  for (const length of lengths) {
    watching.signal?.throwIfAborted()
    const dims = { ...model.dims(length), ...watching.dims }
    const { session, inputs, types } = model
    const program = await buildProgram({ session, applications, inputs, outputs, dims, types })
    try {
      for (const tokens of cases.filter(({ inputIds }) => inputIds.length === length)) {
        watching.signal?.throwIfAborted()
        see(await program.run(model.feed(tokens)))
      }
    } finally {
      program.release()
    }
  }
}

/** The applications up to the last layer, with observers in the layers. Later applications are not run. */
function observed(model: CalibrationModel, { watch, what }: Watching): GraphApplication[] {
  const { applications, layers } = model
  const end = applications.findIndex(({ label }) => label === layers.at(-1))
  return applications.slice(0, end + 1).map((application) => {
    const layer = layers.indexOf(application.label)
    if (layer < 0) return application
    const found = observedSites(model, layer).map((site) => [`${site}.${what}`, outputName(application.label, site, what)])
    const outputs = { ...application.outputs, ...Object.fromEntries(found) }
    return { ...application, graph: watch(application.graph, layer), outputs }
  })
}
