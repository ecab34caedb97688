/** Result of a benchmark suite: a cell per plan, shape and storage type, with ratios to one plan, the best of each shape, and geometric means. */
import type { SuiteDecl, SuiteType } from '../../lang/suite.js'
import type { StepTime } from '../result.js'
import type { Summary } from '../statistics.js'

export type Dims = Readonly<Record<string, number>>

/** Source of times: the events of a GPU, the clock of the host, or the cost model of a device that is not here. */
export type SuiteClock = 'cuda' | 'simt' | 'js' | `model ${string}`

export interface SuiteCell {
  /** A plan; of a kernel, its op; or a peer. */
  readonly plan: string
  readonly peer: boolean
  readonly dtype: SuiteType
  readonly dims: Dims
  /** Milliseconds per pass of every timed replay; one price by a cost model. */
  readonly samples: readonly number[]
  readonly milliseconds: Summary
  readonly floor?: number | undefined
  /** Predicted milliseconds on `predictedOn` of the result. */
  readonly predicted?: number | undefined
  readonly launches?: number | undefined
  /** Time by kernel, the longest first. */
  readonly profile: readonly StepTime[]
}

export interface SuiteResult {
  readonly suite: string
  readonly subject: string
  /** File that declares the suite. */
  readonly file: string
  readonly versus: string
  readonly clock: SuiteClock
  readonly device: string
  /** Device of the predictions. */
  readonly predictedOn: string | undefined
  readonly cells: readonly SuiteCell[]
  /** Reasons why peers were not timed, by peer. */
  readonly problems: Readonly<Record<string, string>>
  readonly notes: readonly string[]
}

export const clockTexts: Readonly<Record<'cuda' | 'simt' | 'js' | 'model', string>> = {
  cuda: "Times are by the GPU's clock, per pass, from events around replays.",
  simt: "Times are by the host's monotonic clock, around each pass of the CPU device.",
  js: "Times are by the host's monotonic clock, around each step that Node evaluates.",
  model: 'Times are predictions of the cost model: nothing was run.',
}

export const clockText = (clock: SuiteClock): string =>
  clockTexts[clock === 'cuda' || clock === 'simt' || clock === 'js' ? clock : 'model']

/** `m=512,n=768` */
export const shapeText = (dims: Dims): string =>
  Object.entries(dims)
    .map(([dim, extent]) => `${dim}=${extent}`)
    .join(',')

const placeOf = ({ dtype, dims }: Pick<SuiteCell, 'dtype' | 'dims'>): string => `${dtype} ${shapeText(dims)}`

/** Cells of equal type and shape, in the order of the suite. */
export function groupsOf(cells: readonly SuiteCell[]): readonly (readonly SuiteCell[])[] {
  const groups = new Map<string, SuiteCell[]>()
  for (const cell of cells) {
    const group = groups.get(placeOf(cell)) ?? []
    groups.set(placeOf(cell), [...group, cell])
  }
  return [...groups.values()]
}

/** A cell with its median over that of the compared plan at its shape, and that of the predictions. */
export interface Rated extends SuiteCell {
  readonly ratio: number | undefined
  readonly predictedRatio: number | undefined
  /** True for the plan, or peer, with the smallest median at its shape. */
  readonly best: boolean
}

export function rated({ cells, versus }: Pick<SuiteResult, 'cells' | 'versus'>): readonly Rated[] {
  return groupsOf(cells).flatMap((group) => {
    const base = group.find(({ plan }) => plan === versus)
    const least = Math.min(...group.map(({ milliseconds }) => milliseconds.median))
    return group.map((cell) => ({
      ...cell,
      ratio: base === undefined ? undefined : cell.milliseconds.median / base.milliseconds.median,
      predictedRatio: base?.predicted === undefined || cell.predicted === undefined ? undefined : cell.predicted / base.predicted,
      best: group.length > 1 && cell.milliseconds.median === least,
    }))
  })
}

/** Summary of a plan over all shapes of a type, or over everything. */
export interface PlanMean {
  readonly plan: string
  /** Undefined for all types together. */
  readonly dtype: SuiteType | undefined
  /** Geometric mean of the ratios; undefined if no shape has both plans. */
  readonly ratio: number | undefined
  readonly predictedRatio: number | undefined
  /** Shapes at which it is the best, and at which it was timed. */
  readonly best: number
  readonly timed: number
}

export function geometricMean(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length)
}

/** Means of every plan, by type if there are several, then over all. */
export function meansOf(result: Pick<SuiteResult, 'cells' | 'versus'>): readonly PlanMean[] {
  const cells = rated(result)
  const types = [...new Set(cells.map(({ dtype }) => dtype))]
  const plans = [...new Set(cells.map(({ plan }) => plan))]
  return plans.flatMap((plan) =>
    [...(types.length > 1 ? types : []), undefined].map((dtype): PlanMean => {
      const own = cells.filter((cell) => cell.plan === plan && (dtype === undefined || cell.dtype === dtype))
      return {
        plan,
        dtype,
        ratio: geometricMean(own.flatMap(({ ratio }) => ratio ?? [])),
        predictedRatio: geometricMean(own.flatMap(({ predictedRatio }) => predictedRatio ?? [])),
        best: own.filter(({ best }) => best).length,
        timed: own.length,
      }
    }),
  )
}

/** Plan that ratios refer to: the declared one, else the first that was timed. */
export const versusOf = ({ versus }: Pick<SuiteDecl, 'versus'>, cells: readonly Pick<SuiteCell, 'plan'>[]): string =>
  versus ?? cells[0]?.plan ?? ''
