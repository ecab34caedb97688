/** Input of a search on a device, and its results so far. */
import type { Graph } from '../../ir/graph.js'
import type { PlanDecl } from '../../lang/plan.js'
import type { KnownKernels } from '../../search/kernel_names.js'
import type { Round } from '../../search/measured.js'
import type { GraphProblem, Subject } from '../../search/problem.js'
import type { About, Entry, SearchRecord } from '../../search/record.js'
import type { SearchStage } from './clock.js'
import type { KernelNames } from './whole_plans.js'

/** Parts of a search that end by time: groups leave some of it for whole plans. */
export type Phase = 'groups' | 'plans'

export interface SearchRun {
  readonly stage: SearchStage
  readonly graph: Graph
  readonly problem: GraphProblem
  readonly about: About
  readonly record: SearchRecord
  /** The plan to beat. */
  readonly incumbent: PlanDecl
  /** Plans that are timed at the end beside the others, and are no part of the search. */
  readonly beside: readonly PlanDecl[]
  /** Plans of the graph by their names, for those that give few rows to others. */
  readonly plans: readonly PlanDecl[]
  /** Name of the plan to write. */
  readonly name: string
  readonly packed: PlanDecl['packed']
  readonly known: KnownKernels
  /** Dimensions of each shape. */
  readonly shapes: readonly Readonly<Record<string, number>>[]
  /** True once no further group, or no further plan, is to be measured. */
  readonly isOver: (phase: Phase) => boolean
  readonly save: (record: SearchRecord) => Promise<void>
  readonly onRound?: (round: Round, result: { readonly subject: Subject; readonly entry: Entry } | undefined) => void
  readonly onStage?: (stage: string) => void
}

/** Results of a search so far. */
export interface State {
  record: SearchRecord
  readonly skipped: Map<string, string>
  readonly names: KernelNames
  /** True if this search has timed something that the record did not have. */
  hasNews: boolean
}
