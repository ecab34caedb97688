/** Options and result of `heddle search`. */
import type { SearchOutcome } from '../bench/search/run.js'
import type { PriceType } from '../cost/device.js'
import type { PlanDecl } from '../lang/plan.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import type { DeviceName } from './pipeline.js'

type Dims = Readonly<Record<string, number>>

export interface SearchVerbOptions {
  /** Dimensions that differ from the usual sizes of the graph; groups are measured at each shape. */
  readonly shape?: readonly Dims[] | undefined
  readonly dtype: PriceType
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  readonly minutes: number
  /** The plan to beat, unless the project has one of the written plan's name. */
  readonly from: string
  /** Plans that are timed at the end beside the others. */
  readonly beside?: readonly string[] | undefined
  /** Name of the plan to write. */
  readonly plan: string
  /** Removal of padding: the parts of `packed` of a plan. */
  readonly packed?: PlanDecl['packed']
  readonly repeats: number
  readonly specs?: string | undefined
  /** Program whose graph it is: the file and the exported name of the plan then have the graph's name, too. */
  readonly of?: string | undefined
  /** File of the plan; by default `plans/NAME.ts` in the specs. */
  readonly out?: string | undefined
  /** File of measured groups; by default `search.json` beside the specs. */
  readonly record?: string | undefined
}

export interface SearchVerbResult extends SearchOutcome {
  readonly graph: string
  readonly device: NativeDeviceInfo
  readonly dtype: PriceType
  readonly shapes: readonly Dims[]
  /** The plan to beat. */
  readonly incumbent: string
  /** Files that were written, or hold the same already. */
  readonly files: readonly string[]
}
