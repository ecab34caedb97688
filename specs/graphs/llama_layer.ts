/**
 * A layer of the LLaMA family: attention to the past of each row and a gated inner network, each after a norm and with its residual. One layer has
 * three forms, over the same weights and caches. A step takes one token of every row. A step of beams does so where rows share their past. A prompt
 * takes concatenated runs of tokens without padding. Families differ in flags: biases of query, key and value (Qwen2), norms of their heads (Qwen3),
 * and a window of positions (Mistral, Phi-3); and a model may be run with caches in int8, or in float32.
 */
import { type AttrValue, type GraphBuilder, type GraphDecl, type GraphSignature, type GraphTensor, graph, tensor } from 'heddle'
import { packRows, unpackRows } from 'heddle/std'
import { splitHeads as splitHeadsLayout } from '../layouts/split_heads.js'
import { add } from '../ops/add.js'
import { addBias } from '../ops/add_bias.js'
import { swiglu } from '../ops/gate.js'
import { maskBeams, maskBeamsWindow, maskFuture, maskFutureWindow, maskPlaces, maskPlacesWindow } from '../ops/mask_past.js'
import { mergeHeads } from '../ops/merge_heads.js'
import { rmsNorm } from '../ops/rms_norm.js'
import { rotateHalves } from '../ops/rotate_halves.js'
import { scale } from '../ops/scale.js'
import { softmax } from '../ops/softmax.js'
import { splitHeads } from '../ops/split_heads.js'
import {
  attentionHeads,
  attentionResult,
  type Cache,
  type CacheType,
  cachesOf,
  cacheTypes,
  givenCaches,
  madeCaches,
  rememberBeams,
  rememberPlace,
  rememberTokens,
} from './llama_caches.js'
import { llamaPrompt, llamaStep } from './typical.js'

/** Differences between layers of the family. */
export interface LlamaFlags {
  /** Query, key and value have biases; the projection after attention may have one too. */
  readonly bias: 'none' | 'heads' | 'all'
  /** Heads of queries and keys are normed before they are rotated. */
  readonly norm: boolean
  /** A token attends at most so many positions: the attribute `window`. */
  readonly window: boolean
  readonly caches: CacheType
}

const weights = {
  attentionGamma: tensor('T', 'n'),
  queryWeight: tensor('T', 'h*d n'),
  keyWeight: tensor('T', 'g*d n'),
  valueWeight: tensor('T', 'g*d n'),
  projectionWeight: tensor('T', 'n h*d'),
  innerGamma: tensor('T', 'n'),
  gateWeight: tensor('T', 'i n'),
  upWeight: tensor('T', 'i n'),
  downWeight: tensor('T', 'n i'),
  cos: tensor('f32', 'p e'),
  sin: tensor('f32', 'p e'),
} as const
const biases = { queryBias: tensor('T', 'h*d'), keyBias: tensor('T', 'g*d'), valueBias: tensor('T', 'g*d') } as const
const outputBias = { projectionBias: tensor('T', 'n') } as const
const headNorms = { queryGamma: tensor('T', 'd'), keyGamma: tensor('T', 'd') } as const

type Handles<T> = { readonly [K in keyof T]: GraphTensor }
type Weights = Handles<typeof weights> & Partial<Handles<typeof biases> & Handles<typeof outputBias> & Handles<typeof headNorms>>
type Nodes = Readonly<Record<string, GraphTensor>>

const linear = 'm k, n k -> m n'
const given = (value: GraphTensor | undefined): GraphTensor => {
  if (value === undefined) throw new Error('a flag of the layer and its weights disagree')
  return value
}

/** Normed tokens, the dimension of their rows, and their places. */
interface HeadInputs {
  readonly x: GraphTensor
  readonly rows: 'r' | 't'
  readonly places: GraphTensor
}

/** Queries, keys and values of the heads of every row, with queries and keys rotated. */
function heads(g: GraphBuilder, { x, rows, places }: HeadInputs, w: Weights, { bias, norm }: LlamaFlags, eps: AttrValue) {
  const nodes: Record<string, GraphTensor> = {}
  const keep = (name: string, value: GraphTensor): GraphTensor => {
    nodes[name] = value
    return value
  }
  const product = (name: string, weight: GraphTensor, added: GraphTensor | undefined): GraphTensor => {
    const made = keep(name, g.matmul(linear, x, weight))
    return bias === 'none' ? made : keep(`${name}Bias`, g.apply(addBias, { x: made, bias: given(added) }).y)
  }
  const query = product('query', w.queryWeight, w.queryBias)
  const key = product('key', w.keyWeight, w.keyBias)
  const value = product('value', w.valueWeight, w.valueBias)
  const rotate = (name: string, made: GraphTensor, of: 'h' | 'g', gamma: GraphTensor | undefined): GraphTensor => {
    const normed = norm
      ? keep(`${name}Norm`, g.apply(rmsNorm, { x: g.view(made, `${rows}*${of} d`), gamma: given(gamma) }, { eps }).y)
      : made
    const seen = g.view(normed, `${rows} ${of} d`)
    return keep(`${name}Turned`, g.apply(rotateHalves, { x: seen, places, cos: w.cos, sin: w.sin }).y)
  }
  const rotated = {
    query: rotate('query', query, 'h', w.queryGamma),
    key: rotate('key', key, 'g', w.keyGamma),
    value: g.view(value, `${rows} g d`),
  }
  return { nodes, ...rotated }
}

/** The nodes that write a token into the caches. */
const joined = (keys: Cache, values: Cache): Nodes => ({ keyCache: keys.cache, valueCache: values.cache })

/** The part of the layer after attention: its projection, and the inner network. */
function rest(g: GraphBuilder, x: GraphTensor, context: GraphTensor, w: Weights, { bias }: LlamaFlags, eps: AttrValue) {
  const projection = g.matmul(linear, context, w.projectionWeight)
  const projectionBias = bias === 'all' ? g.apply(addBias, { x: projection, bias: given(w.projectionBias) }).y : projection
  const attentionResidual = g.apply(add, { x: projectionBias, y: x }).z
  const innerNorm = g.apply(rmsNorm, { x: attentionResidual, gamma: w.innerGamma }, { eps }).y
  const gate = g.matmul(linear, innerNorm, w.gateWeight)
  const up = g.matmul(linear, innerNorm, w.upWeight)
  const gated = g.apply(swiglu, { gate, up }).y
  const down = g.matmul(linear, gated, w.downWeight)
  const outputResidual = g.apply(add, { x: down, y: attentionResidual }).z
  const projected = bias === 'all' ? { projection, projectionBias } : { projection }
  return { ...projected, attentionResidual, innerNorm, gate, up, gated, down, outputResidual }
}

const biasNames = { none: '', heads: '_bias', all: '_biases' } as const
const cacheNames = { float: '', f32: '_f32_caches', int8: '_int8_caches' } as const
const suffix = ({ bias, norm, window, caches }: LlamaFlags): string =>
  `${biasNames[bias]}${norm ? '_norm' : ''}${window ? '_window' : ''}${cacheNames[caches]}`

const weightsOf = ({ bias, norm }: LlamaFlags) => ({
  ...weights,
  ...(bias === 'none' ? {} : biases),
  ...(bias === 'all' ? outputBias : {}),
  ...(norm ? headNorms : {}),
})

const attrsOf = ({ window }: LlamaFlags) => ['scale', 'eps', ...(window ? (['window'] as const) : [])] as const

/**
 * One token of every row: `places(r)` is its position in row `r`, at least 0 and below u and p. Dims: r rows, u positions of the caches, n hidden, h
 * heads, g heads of keys and values, d headDim, i inner, p positions and e pairs of the tables. Attributes: `scale` is 1/sqrt(headDim), `eps` belongs
 * to all norms, `window` counts positions.
 */
function stepLayer(flags: LlamaFlags) {
  return graph(`llama_step${suffix(flags)}`, {
    inputs: { x: tensor('T', 'r n'), places: tensor('i32', 'r'), ...cachesOf(flags.caches) },
    weights: weightsOf(flags),
    attrs: attrsOf(flags),
    typical: llamaStep,
    build: (g, { x, places, ...caches }, w: Weights, { scale: factor, eps, window }) => {
      const attentionNorm = g.apply(rmsNorm, { x, gamma: w.attentionGamma }, { eps }).y
      const { nodes, ...made } = heads(g, { x: attentionNorm, rows: 'r', places }, w, flags, eps)
      const { keys, values } = givenCaches(caches)
      const { query, key, value, nodes: widened } = attentionHeads(g, flags.caches, 'r', made)
      const { after: keyAfter, past: keyPast } = rememberPlace(g, keys, key, places)
      const { after: valueAfter, past: valuePast } = rememberPlace(g, values, value, places)
      const scores = g.matmul('r h d, r u h d -> r h u', query, keyPast)
      const scaled = g.apply(scale, { x: g.view(scores, 'r*h u') }, { factor }).y
      const seen = { x: g.view(scaled, 'r h u'), places }
      const masked = flags.window ? g.apply(maskPlacesWindow, seen, { size: window }).y : g.apply(maskPlaces, seen).y
      const probabilities = g.apply(softmax, { x: g.view(masked, 'r*h u') }).y
      const attended = g.matmul('r h u, r u h d -> r h d', g.view(probabilities, 'r h u'), valuePast)
      const { context, nodes: results } = attentionResult(g, flags.caches, attended, g.view(attended, 'r h*d'))
      const after = rest(g, x, context, w, flags, eps)
      const attention = { ...joined(keyAfter, valueAfter), keyPast, valuePast, scores, scaled, masked, probabilities, ...results }
      const all: Nodes = { attentionNorm, ...nodes, ...widened, ...attention, ...after }
      return { nodes: all, outputs: { hidden: after.outputResidual, ...madeCaches(keyAfter, valueAfter) } }
    },
  })
}

/**
 * One token of every row, where beams of a sequence share their past: `beams(r, u)` is the cache row that holds position `u` of row `r`. Prompts are
 * at positions below `cached(r)`, tokens chosen since at `first` to `slot`, this step's at `slot` of every row. `places(r)` is the token's position
 * in its text. The other names are as above.
 */
function beamLayer(flags: LlamaFlags) {
  return graph(`llama_beams${suffix(flags)}`, {
    inputs: {
      x: tensor('T', 'r n'),
      places: tensor('i32', 'r'),
      beams: tensor('i32', 'r u'),
      cached: tensor('i32', 'r'),
      first: tensor('i32', '1'),
      slot: tensor('i32', '1'),
      ...cachesOf(flags.caches),
    },
    weights: weightsOf(flags),
    attrs: attrsOf(flags),
    typical: llamaStep,
    build: (g, inputs, w: Weights, { scale: factor, eps, window }) => {
      const { x, places, beams, cached, first, slot, ...caches } = inputs
      const attentionNorm = g.apply(rmsNorm, { x, gamma: w.attentionGamma }, { eps }).y
      const { nodes, ...made } = heads(g, { x: attentionNorm, rows: 'r', places }, w, flags, eps)
      const { keys, values } = givenCaches(caches)
      const { query, key, value, nodes: widened } = attentionHeads(g, flags.caches, 'r', made)
      const { after: keyAfter, past: keyPast } = rememberBeams(g, keys, key, { slot, beams })
      const { after: valueAfter, past: valuePast } = rememberBeams(g, values, value, { slot, beams })
      const scores = g.matmul('r h d, r u h d -> r h u', query, keyPast)
      const scaled = g.apply(scale, { x: g.view(scores, 'r*h u') }, { factor }).y
      const seen = { x: g.view(scaled, 'r h u'), cached, first, slot }
      const masked = flags.window ? g.apply(maskBeamsWindow, seen, { size: window }).y : g.apply(maskBeams, seen).y
      const probabilities = g.apply(softmax, { x: g.view(masked, 'r*h u') }).y
      const attended = g.matmul('r h u, r u h d -> r h d', g.view(probabilities, 'r h u'), valuePast)
      const { context, nodes: results } = attentionResult(g, flags.caches, attended, g.view(attended, 'r h*d'))
      const after = rest(g, x, context, w, flags, eps)
      const attention = { ...joined(keyAfter, valueAfter), keyPast, valuePast, scores, scaled, masked, probabilities, ...results }
      const all: Nodes = { attentionNorm, ...nodes, ...widened, ...attention, ...after }
      return { nodes: all, outputs: { hidden: after.outputResidual, ...madeCaches(keyAfter, valueAfter) } }
    },
  })
}

/**
 * Runs of tokens, concatenated in t rows: those of sequence `b` begin at row `starts(b)`, `lengths(b)` of them, and have positions `first(b)` and on
 * in cache row `slots(b)`. `sequences` and `positions` give each row's sequence and its index in that run, -1 and 0 after the last. `places` is its
 * position. `writers` gives the sequence that writes each cache row, or -1. Further dims: b sequences, s tokens of the longest run.
 */
function promptLayer(flags: LlamaFlags) {
  return graph(`llama_prompt${suffix(flags)}`, {
    inputs: {
      x: tensor('T', 't n'),
      places: tensor('i32', 't'),
      sequences: tensor('i32', 't'),
      positions: tensor('i32', 't'),
      starts: tensor('i32', 'b'),
      lengths: tensor('i32', 'b'),
      first: tensor('i32', 'b'),
      slots: tensor('i32', 'b'),
      writers: tensor('i32', 'r'),
      ...cachesOf(flags.caches),
    },
    weights: weightsOf(flags),
    attrs: attrsOf(flags),
    dims: ['s'],
    typical: llamaPrompt,
    build: (g, inputs, w: Weights, { scale: factor, eps, window }) => {
      const { x, places, sequences, positions, starts, lengths, first, slots, writers, ...caches } = inputs
      const attentionNorm = g.apply(rmsNorm, { x, gamma: w.attentionGamma }, { eps }).y
      const { nodes, ...made } = heads(g, { x: attentionNorm, rows: 't', places }, w, flags, eps)
      const { keys, values } = givenCaches(caches)
      const { query, key, value, nodes: widened } = attentionHeads(g, flags.caches, 't', made)
      const where = { slots, writers, starts, lengths, first }
      const { after: keyAfter, past: keyPast } = rememberTokens(g, keys, key, where)
      const { after: valueAfter, past: valuePast } = rememberTokens(g, values, value, where)
      const queryRuns = g.apply(unpackRows, { x: g.view(query, 't h*d'), starts, lengths }, {}, { s: 's' }).y
      const queryHeads = g.apply(splitHeads, { x: g.view(queryRuns, 'b s h d') }).y
      const scores = g.matmul('b s h d, b u h d -> b h s u', queryHeads, keyPast)
      const scaled = g.apply(scale, { x: g.view(scores, 'b*h*s u') }, { factor }).y
      const seen = { x: g.view(scaled, 'b h s u'), first }
      const masked = flags.window ? g.apply(maskFutureWindow, seen, { size: window }).y : g.apply(maskFuture, seen).y
      const probabilities = g.apply(softmax, { x: g.view(masked, 'b*h*s u') }).y
      const attended = g.matmul('b h s u, b u h d -> b s h d', g.view(probabilities, 'b h s u'), valuePast, splitHeadsLayout)
      const merged = g.apply(mergeHeads, { x: attended }).y
      const packed = g.apply(packRows, { x: g.view(merged, 'b s h*d'), sequences, positions }).y
      const { context, nodes: results } = attentionResult(g, flags.caches, packed, packed)
      const after = rest(g, x, context, w, flags, eps)
      const attention = { ...joined(keyAfter, valueAfter), keyPast, valuePast, queryRuns, queryHeads, scores, scaled, masked }
      const weighted = { probabilities, attended, merged, ...results }
      const all: Nodes = { attentionNorm, ...nodes, ...widened, ...attention, ...weighted, ...after }
      return { nodes: all, outputs: { hidden: after.outputResidual, ...madeCaches(keyAfter, valueAfter) } }
    },
  })
}

const booleans = [false, true] as const
/** All combinations of flags. */
export const everyFlags: readonly LlamaFlags[] = (['none', 'heads', 'all'] as const).flatMap((bias) =>
  booleans.flatMap((norm) => booleans.flatMap((window) => cacheTypes.map((caches) => ({ bias, norm, window, caches })))),
)
const nameOf = (flags: LlamaFlags): string => suffix(flags)

/** By the flags that are set, in the order of `LlamaFlags`: `''`, `'_bias'`, `'_bias_window'`, and so on. */
const stepLayers = Object.fromEntries(everyFlags.map((flags) => [nameOf(flags), stepLayer(flags)]))
const beamLayers = Object.fromEntries(everyFlags.map((flags) => [nameOf(flags), beamLayer(flags)]))
const promptLayers = Object.fromEntries(everyFlags.map((flags) => [nameOf(flags), promptLayer(flags)]))

export const llamaLayers = { step: stepLayers, beams: beamLayers, prompt: promptLayers } as const

/** A layer of any form, with unspecified inputs. */
interface LayerSignature extends GraphSignature {
  readonly outputs: readonly ('hidden' | 'keys' | 'values' | 'keySteps' | 'valueSteps')[]
}

/** The layer of a form with the given flags. */
export function llamaLayer(form: keyof typeof llamaLayers, flags: LlamaFlags): GraphDecl<string, string, LayerSignature> {
  const found = llamaLayers[form][nameOf(flags)]
  if (found === undefined) throw new Error(`there is no layer llama_${form}${nameOf(flags)}`)
  return found
}
