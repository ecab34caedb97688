/** Result of scheduling: a kernel with its passes, its vector width, and the teams of threads and register budgets of its variants. */
import { dim as dimVar, i32 } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { getOwn } from '../ir/get_own.js'
import type { Instance } from '../ir/instance.js'
import type { Kernel, RowAxis } from '../ir/kernel.js'
import { isMerged } from '../ir/row_axis.js'
import type { Staging } from './access/staged_loads.js'
import type { DividedProgram } from './divided/divided_program.js'
import type { Interval } from './divided/update_range.js'
import type { GroupedMatmul } from './grouped/grouped_matmul.js'
import { type Pass, type Step, statementsOf } from './normalise/passes.js'

/** The threads that compute one row together. */
export type Team =
  | { readonly kind: 'thread'; readonly rowsPerBlock: number }
  /** A power of two of adjacent lanes of a warp. */
  | { readonly kind: 'warp'; readonly lanes: number; readonly rowsPerBlock: number }
  | { readonly kind: 'block'; readonly lanes: number }

/** A bound on a run-time extent, tested by the launcher. */
export interface Limit {
  /** Longest row that the variant accepts; undefined if it accepts any. */
  readonly length: number | undefined
  /** Largest number of rows that the variant accepts; undefined if it accepts any. */
  readonly rows: number | undefined
  /** Rows that are accepted whatever their number: longer ones that are no whole chunks. */
  readonly odd?: { readonly above: number; readonly width: number }
  /** Width of chunks of which rows are a whole number. */
  readonly whole?: number
  /** Further limits of a measured variant: the conditions of its measurement. */
  readonly tuned?: TunedFor
}

/** True if a variant without measured conditions accepts rows. */
export const accepts = ({ length, rows, odd, whole = 1, tuned }: Limit, count: number, elements: number): boolean =>
  tuned === undefined &&
  elements % whole === 0 &&
  elements <= (length ?? Number.POSITIVE_INFINITY) &&
  (count <= (rows ?? Number.POSITIVE_INFINITY) || (odd !== undefined && elements > odd.above && elements % odd.width !== 0))

/** Conditions under which a measurement holds. */
export interface TunedFor {
  /** `sm_90`, or `simt`. The CPU device accepts the variants of every architecture, so that variants of GPUs are tested. */
  readonly architecture: string
  /** The only row length. */
  readonly length: number
  /** Smallest number of rows. */
  readonly fromRows: number
}

/** Most chunks whose totals a lane of a block keeps apart: they are combined as those of as many lanes, so that the number of rows may choose. */
export const totalsApart = 2

/** Chunks of a lane whose totals a variant keeps apart. */
export const chunksApart = ({ kind }: Team, chunks: number | undefined): number =>
  kind === 'block' && chunks !== undefined && chunks <= totalsApart ? chunks : 1

/** One compiled kernel of a row program. The launcher takes the first whose limit holds. */
export interface Variant {
  readonly name: string
  readonly team: Team
  /** Chunks per lane of row values in registers; undefined if each pass reads and computes the values again. */
  readonly chunks: number | undefined
  /** Consecutive elements that a lane handles at a time, if not the kernel's `vec`. */
  readonly vec?: number
  readonly limit: Limit
  /** Reason why this variant suits rows within the limit. */
  readonly reason: string
}

/** No value depends on another element of its row: each thread computes one chunk of one row. */
export interface ElementwiseProgram {
  readonly kind: 'elementwise'
  /** Scalars of the row, then exactly one pass. */
  readonly steps: readonly Step[]
  readonly threads: number
  /** Blocks that a multiprocessor has room for, which bounds the registers of a thread; one by default. */
  readonly blocks?: number
  /** Steps for a chunk that lies in one piece of its row, if they load more of it in chunks. */
  readonly pieces?: PieceSteps
  /** The axis that threads cover only in part. */
  readonly interval?: Interval
  /** Measured variants, which the launcher tries first. */
  readonly tuned?: readonly ElementwiseVariant[]
  /** Loads that blocks stage for tiles of the loop and one axis. */
  readonly staging?: Staging
}

/** Steps for chunks in which no piece ends (src/schedule/access/segments.ts), or for which conditions hold. */
export interface PieceSteps {
  /** Index variable of the chunk's first element. */
  readonly index: string
  /** Ends of pieces. */
  readonly bounds: readonly Expr[]
  /** Condition of the whole chunk. */
  readonly when?: Expr
  readonly steps: readonly Step[]
}

/** An elementwise kernel with a width and a block size of its own. */
export interface ElementwiseVariant {
  readonly name: string
  readonly vec: number
  readonly threads: number
  readonly limit: Limit
  readonly reason: string
}

/** Rows computed by teams of threads. */
export interface RowProgram {
  readonly kind: 'rows'
  /** Steps when row values are kept in registers between passes. */
  readonly kept: readonly Step[]
  /** Steps when each pass computes the row values it needs again. */
  readonly reread: readonly Step[]
  /** The kernel of these steps, if reductions are joined in it (src/schedule/rows/one_pass.ts). */
  readonly joined?: Kernel
  /** The axis of which teams process only a part of the rows. */
  readonly interval?: Interval
  /** Lengths of all loops, or bounds of them; the longest decides the variant. Undefined if only the row itself knows them. */
  readonly lengths: readonly Expr[] | undefined
  readonly variants: readonly Variant[]
}

/** Steps of a program from which names are taken; those of columns are of another kind. */
export const stepsOf = ({ program }: Pick<MappedKernel, 'program'>): readonly Step[] =>
  program.kind === 'rows' ? program.kept : program.kind === 'elementwise' ? program.steps : []

/** Statements whose monoids a kernel's source declares: those of its body, and of the kernel that reads rows again. */
export const declaring = ({ instance: { kernel }, program }: Pick<MappedKernel, 'instance' | 'program'>): Kernel =>
  program.kind === 'rows' && program.joined !== undefined ? { ...kernel, body: [...kernel.body, ...program.joined.body] } : kernel

export interface MappedKernel {
  readonly instance: Instance
  /** Names the generated file, the launcher and the manifest entry. */
  readonly key: string
  /** Axes that one row (elementwise: one row of chunks) is an element of, outermost first. */
  readonly axes: readonly RowAxis[]
  /** The axis among these along which neighbouring threads of an elementwise kernel run, if that is not the row of chunks. */
  readonly across?: RowAxis | undefined
  /** Consecutive elements that a thread handles at a time. */
  readonly vec: number
  /** True if kernels take their width (elementwise: also their block size) as a template argument, since variants differ in it. */
  readonly generic?: boolean
  readonly program: ElementwiseProgram | RowProgram | DividedProgram
  readonly split?: Split
  /** The matmul that the whole instance is; its main loop takes the place of the program. */
  readonly grouped?: GroupedMatmul
}

/** Launches before a kernel that is the last of several. Their results stay in scratch memory for later ones. */
export interface Split {
  /** The instance that all launches compute together. */
  readonly whole: Instance
  /** In order of execution. The outputs of each are scratch. */
  readonly before: readonly MappedKernel[]
  /** The same in one launch, where groups of points are rows of moderate length. */
  readonly inRows?: InRows
  /** The same for calls with these numbers as dimensions: one launch in place of all. */
  readonly fixed?: readonly FixedSizes[]
  readonly columns?: ColumnLaunches
  readonly inRow?: InRow
}

/** One launch over all elements as one row, for rows that are no whole chunks, or for planes that fill little of a tile. */
export interface InRow {
  readonly mapped: MappedKernel
  /** Length of rows, and elements of their chunks. */
  readonly length: Expr
  readonly width: number
  /** The plane of a tile, if others are loaded through tiles: it is small if it has few columns, the length of rows, and few places. */
  readonly tile?: { readonly rows: Expr; readonly columns: number; readonly places: number }
  /** Extents whose product is the length of the one row. */
  readonly extents: readonly Expr[]
}

/** Launches in place of all, where groups are few columns: each column is reduced, and its group combined where it is read. */
export interface ColumnLaunches {
  /** In order of execution; the last stores the outputs. */
  readonly launches: readonly MappedKernel[]
  /** Columns of a group, and the most that every thread combines. */
  readonly length: Expr
  readonly most: number
  /** Columns of a chunk: launches that walk groups suit those that are whole chunks. */
  readonly width: number
  /** Extents whose product is the number of elements that are reduced. */
  readonly extents: readonly Expr[]
}

/** One launch in place of all, where dimensions are numbers that facts state, or suit it otherwise. The first that suits a call is taken. */
export interface FixedSizes {
  readonly mapped: MappedKernel
  readonly dims: Readonly<Record<string, number>>
  /** A dimension that is a multiple of a width: the length of rows that windows read in spans. */
  readonly whole?: { readonly dim: string; readonly width: number }
}

/** True if a call has the dimensions of a launch in place of all. */
export const suitsSizes = ({ dims, whole }: FixedSizes, sizes: Readonly<Record<string, number | undefined>>): boolean =>
  Object.entries(dims).every(([dim, extent]) => sizes[dim] === extent) &&
  (whole === undefined || (sizes[whole.dim] ?? Number.NaN) % whole.width === 0)

/** One launch in place of several, and the sizes for which the launcher takes it. */
export interface InRows {
  readonly mapped: MappedKernel
  /** Elements of a row or group, or rows of columns. */
  readonly length: Expr
  /** Longest row; longest group that stays in registers, or most rows of columns. */
  readonly kept: number
  /** Number of groups from which on longer groups are rows, too; of columns with more rows. Undefined for rows of an op: their length alone chooses. */
  readonly groups: number | undefined
  /** Rows of an op: their number from which on longer ones are computed alone, too, where any order of combination gives the same bits. */
  readonly many?: number
}

/** The launch that measurements and plans choose a schedule for: of rows that also have a form in several launches, the one that computes them alone. */
export const scheduledLaunch = (mapped: MappedKernel): MappedKernel => {
  const inRows = mapped.split?.inRows
  return inRows === undefined || inRows.groups !== undefined ? mapped : inRows.mapped
}

/** Extents whose product is the number of groups, or of columns. */
export const groupExtents = ({ mapped }: Pick<InRows, 'mapped'>, extent: (dim: string) => Expr): readonly Expr[] => [
  ...mapped.axes.map(({ dim }) => extent(dim)),
  ...(mapped.program.kind === 'columns' ? [mapped.program.length] : []),
]

/** Launches of an op other than the last: the one in place of all, and those before the last. */
export const launchesBeside = (split: Split | undefined): readonly MappedKernel[] => [
  ...(split?.fixed ?? []).map(({ mapped }) => mapped),
  ...(split?.inRows === undefined ? [] : [split.inRows.mapped]),
  ...(split?.inRow === undefined ? [] : [split.inRow.mapped]),
  ...(split?.columns?.launches ?? []),
  ...(split?.before ?? []),
]

/** True if a kernel loads elements beside those of its chunks with them. */
export const isInSpans = ({ program }: Pick<MappedKernel, 'program'>): boolean =>
  program.kind === 'elementwise' && onlyPass(program).rows.some((row) => row.kind === 'loaded' && (row.shift ?? 0) !== 0)

/** True if a kernel moves interleaved elements in groups. */
export const isInGroups = ({ program }: Pick<MappedKernel, 'program'>): boolean =>
  program.kind === 'elementwise' &&
  [...onlyPass(program).rows, ...statementsOf(onlyPass(program), 'loopStore')].some(
    (each) => 'interleaved' in each && each.interleaved !== undefined,
  )

/** The instance that a mapped kernel was made from. */
export const wholeOf = ({ instance, split }: Pick<MappedKernel, 'instance' | 'split'>): Instance => split?.whole ?? instance

/** The axis that a kernel covers only in part. */
export const intervalIn = ({ program }: Pick<MappedKernel, 'program'>): Interval | undefined =>
  program.kind === 'elementwise' || program.kind === 'rows' ? program.interval : undefined

/** The one pass of an elementwise program. */
export function onlyPass(program: ElementwiseProgram): Pass {
  const pass = program.steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))[0]
  if (pass === undefined) throw new Error('internal: an elementwise program has one pass')
  return pass
}

/** True if an axis, or the loop of an elementwise program, stands for several. */
export function hasMergedAxes({ axes, program, instance }: Pick<MappedKernel, 'axes' | 'program' | 'instance'>): boolean {
  if (program.kind !== 'elementwise') return axes.some(isMerged)
  const { length } = onlyPass(program).loop
  const isOneRow = length.kind === 'dim' && getOwn(instance.kernel.computed ?? {}, length.name) !== undefined
  return axes.some(isMerged) || isProduct(length) || isOneRow
}

/** True for the extent of merged axes, which may exceed the range of an index. */
export const isProduct = (length: Expr): boolean => length.kind === 'call' && length.fn === 'mul'

/** Extents of dimensions: numbers if the instance fixes them. */
export const extentIn =
  ({ instance }: Pick<MappedKernel, 'instance'>) =>
  (dim: string): Expr => {
    const known = getOwn(instance.dims, dim)
    return known === undefined ? dimVar(dim) : i32(known)
  }
