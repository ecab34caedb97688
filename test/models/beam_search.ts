/**
 * Beam searches over a tiny random Markov model: the loop around a step's graph, and the rules written out over lists of hypotheses. The loop does
 * not depend on the computation of a step, so both bodies and kernels run in it.
 */
import { beamStep, beamStepDiverse, beamStepHf } from '../../specs/graphs/beam.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { type BeamRule, emptyPool, initialScores } from '../../src/models/decoding/beam_search.js'
import { type BeamHistory, type Hypothesis, traceBeams, tracePool } from '../../src/models/decoding/beam_trace.js'
import { normal, random } from '../../src/verify/random.js'
import { interpret } from './interpreter.js'

/** The logits after the ids so far. */
export type Model = (ids: readonly number[]) => readonly number[]

/** A model whose logits depend on the last two ids, the same for the same name. */
export function markovModel(name: string, vocab: number, sharpness = 2): Model {
  const known = new Map<string, readonly number[]>()
  return (ids) => {
    const context = ids.slice(-2).join(' ')
    const logits = known.get(context)
    if (logits !== undefined) return logits
    const next = random(`${name} ${context}`)
    const made = Array.from({ length: vocab }, () => Math.fround(sharpness * normal(next)))
    known.set(context, made)
    return made
  }
}

export interface Search {
  readonly rule: BeamRule
  /** A model for each sequence of the batch. */
  readonly models: readonly Model[]
  readonly vocab: number
  readonly width: number
  readonly steps: number
  readonly ends: readonly number[]
  readonly p: number
  readonly k: number
  readonly lengthPenalty?: number
  /** Diversity rate of the plain rule; a given rate, even 0, has a separate graph. */
  readonly diversityRate?: number
  /** Early stopping in the op's encoding: 0 false, 1 true, 2 never. */
  readonly earlyStopping?: number
  /** Change of log-probabilities after the ids so far, for the rule of `generate`; none by default. */
  readonly changed?: (scores: readonly number[], ids: readonly number[]) => readonly number[]
}

export type Tensors = Readonly<Record<string, HostTensor>>

/** Computes a step: outputs of the rule's graph for its inputs. */
export type Step = (inputs: Tensors, search: Search) => Tensors | Promise<Tensors>

export const graphOf = ({ rule, diversityRate }: Search) => {
  if (rule === 'hf') return beamStepHf.graph
  return (diversityRate === undefined ? beamStep : beamStepDiverse).graph
}

export const dimsOf = ({ models, width, vocab, p, k, ends }: Search) => ({
  b: models.length,
  w: width,
  v: vocab,
  p,
  k,
  e: ends.length,
  o: 1,
})

export const attrsOf = (search: Search): Readonly<Record<string, number>> =>
  search.rule === 'plain'
    ? { maxSteps: search.steps, ...(search.diversityRate === undefined ? {} : { diversityRate: search.diversityRate }) }
    : {
        ...{ lengthPenalty: search.lengthPenalty ?? 1, earlyStopping: search.earlyStopping ?? 0, maxSteps: search.steps },
        normalised: search.changed === undefined ? 0 : 1,
      }

const same = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, name]))

/** The step's graph as programs and the interpreter apply it: every value under its own name. */
export function applicationOf(search: Search) {
  const graph = graphOf(search)
  const [inputs, outputs] = [same(Object.keys(graph.inputs)), same(Object.keys(graph.outputs))]
  return { graph, label: 'beam', attrs: attrsOf(search), inputs, weights: {}, outputs }
}

/** A step by the bodies of its ops. */
export const stepByBodies: Step = (inputs, search) => {
  const application = applicationOf(search)
  const values = interpret([application], inputs, {}, dimsOf(search))
  return Object.fromEntries([...values].filter(([name]) => Object.hasOwn(application.outputs, name)))
}

export interface Outcome {
  readonly history: BeamHistory
  /** Outputs of every step. */
  readonly outputs: readonly Tensors[]
  /** For each sequence its hypotheses, best first. */
  readonly found: readonly (readonly Hypothesis[])[]
}

/** Searches, a step after the other, until every sequence is over or the steps are. */
export async function runSearch(search: Search, step: Step = stepByBodies): Promise<Outcome> {
  const { rule, models, width, vocab, ends, steps, changed } = search
  const given = (model: Model, ids: readonly number[]): readonly number[] =>
    changed === undefined ? model(ids) : changed(logSoftmax(model(ids)), ids)
  const batch = models.length
  const rows = batch * width
  const at = (data: ArrayLike<number>, shape = [batch, width]): HostTensor => ({ data, shape })
  let texts = Array.from({ length: rows }, (): readonly number[] => [])
  let state: Tensors =
    rule === 'plain'
      ? { cumulative: at(initialScores(batch, width, rule), [rows]), finished: at(new Int32Array(rows), [rows]) }
      : {
          cumulative: at(initialScores(batch, width, rule), [rows]),
          ...Object.fromEntries(Object.entries(emptyPool(batch, width)).map(([name, values]) => [name, at(values)])),
          finished: at(new Int32Array(batch), [batch]),
        }
  const outputs: Tensors[] = []
  const history = { words: [] as ArrayLike<number>[], parents: [] as ArrayLike<number>[] }
  for (let now = 0; now < steps; now++) {
    const logits = texts.flatMap((ids, row) => {
      const model = models[Math.floor(row / width)]
      return model === undefined ? [] : given(model, ids)
    })
    const inputs = { logits: at(logits, [rows, vocab]), ends: at([...ends], [ends.length]), step: at([now], [1]), ...state }
    const made = await step(inputs, search)
    outputs.push(made)
    const value = (name: string): HostTensor => made[name] ?? at([])
    history.words.push(value('words').data)
    history.parents.push(value('parents').data)
    texts = texts.map((_, row) => [...(texts[value('parents').data[row] ?? 0] ?? []), value('words').data[row] ?? 0])
    state =
      rule === 'plain'
        ? { cumulative: value('cumulative'), finished: value('finished') }
        : {
            cumulative: value('cumulative'),
            poolScores: value('poolScores'),
            poolSteps: value('poolSteps'),
            poolRows: value('poolRows'),
            poolWords: value('poolWords'),
            finished: value('finished'),
          }
    if (Array.from((state.finished ?? at([])).data).every((flag) => flag > 0)) break
  }
  const wanted = { batch, width, ends, count: width }
  const data = (name: string): ArrayLike<number> => state[name]?.data ?? []
  const found =
    rule === 'plain'
      ? traceBeams(history, data('cumulative'), wanted)
      : tracePool(
          history,
          { scores: data('poolScores'), steps: data('poolSteps'), rows: data('poolRows'), words: data('poolWords') },
          { ...wanted, lengthPenalty: search.lengthPenalty ?? 1 },
        )
  return { history, outputs, found }
}

const logSoftmax = (logits: readonly number[]): number[] => {
  const top = Math.max(...logits)
  const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0))
  return logits.map((logit) => logit - top - total)
}

interface Beam {
  readonly ids: readonly number[]
  readonly score: number
  readonly over: boolean
}

/** Largest score first; ties to the lower beam, then to the lower id, which is the order candidates come in. */
const byScore = (a: { readonly score: number }, b: { readonly score: number }): number => b.score - a.score

const beforeEnd = (ids: readonly number[], ends: readonly number[]): readonly number[] => {
  const end = ids.findIndex((id) => ends.includes(id))
  return end === -1 ? ids : ids.slice(0, end)
}

/**
 * FasterTransformer's plain rule over a list of beams, for one sequence. With a diversity rate each beam offers its best tokens, as many as there are
 * beams, and these compare by their scores plus their ranks times the rate.
 */
export function plainRule(
  model: Model,
  { width, steps, ends, diversityRate = 0 }: Pick<Search, 'width' | 'steps' | 'ends' | 'diversityRate'>,
): Hypothesis[] {
  let beams: Beam[] = [{ ids: [], score: 0, over: false }]
  for (let step = 0; step < steps && beams.some(({ over }) => !over); step++) {
    beams = beams
      .flatMap((beam) => {
        const going = logSoftmax(model(beam.ids)).map((cost, id) => ({
          ids: [...beam.ids, id],
          score: beam.score + cost,
          over: ends.includes(id),
        }))
        const offered = beam.over ? [beam] : going.sort(byScore).slice(0, width)
        return offered.map((each, rank) => ({ each, score: each.score + rank * diversityRate }))
      })
      .sort(byScore)
      .slice(0, width)
      .map(({ each }) => each)
  }
  return beams.map(({ ids, score }) => ({ ids: beforeEnd(ids, ends), cumLogProb: score, score }))
}

/** Every text of at most `steps` ids, best first, for one sequence. */
export function exhaustive(model: Model, { steps, ends }: Pick<Search, 'steps' | 'ends'>): Hypothesis[] {
  const all: Hypothesis[] = []
  const grow = (ids: readonly number[], score: number): void => {
    if (ids.length === steps || ends.includes(ids.at(-1) ?? -1)) all.push({ ids: beforeEnd(ids, ends), cumLogProb: score, score })
    else for (const [id, cost] of logSoftmax(model(ids)).entries()) grow([...ids, id], score + cost)
  }
  grow([], 0)
  return all.sort(byScore)
}

/** The rule of Hugging Face's `generate` over lists of hypotheses, for one sequence. */
export function hfRule(model: Model, search: Search): Hypothesis[] {
  const { width, steps, ends, lengthPenalty = 1, earlyStopping = 0, changed = (scores) => scores } = search
  let running: Beam[] = [{ ids: [], score: 0, over: false }]
  let pool: Hypothesis[] = []
  for (let length = 1; length <= steps; length++) {
    const candidates = running
      .flatMap((beam) =>
        changed(logSoftmax(model(beam.ids)), beam.ids).map((cost, id) => ({
          ids: [...beam.ids, id],
          score: beam.score + cost,
          over: ends.includes(id) || length === steps,
        })),
      )
      .sort(byScore)
      .slice(0, Math.max(2, 1 + ends.length) * width)
    const entering = candidates
      .slice(0, width)
      .filter(({ over }) => over)
      .map(({ ids, score }) => ({ ids: beforeEnd(ids, ends), cumLogProb: score, score: score / length ** lengthPenalty }))
    pool = [...pool, ...entering].sort(byScore).slice(0, width)
    running = candidates.filter(({ over }) => !over).slice(0, width)
    if (pool.length < width) continue
    const longest = earlyStopping === 2 && lengthPenalty > 0 ? steps : length
    const possible = (running[0]?.score ?? Number.NEGATIVE_INFINITY) / longest ** lengthPenalty
    if (earlyStopping === 1 || possible <= (pool.at(-1)?.score ?? 0)) break
  }
  return pool
}
