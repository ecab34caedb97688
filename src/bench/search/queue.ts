/**
 * Groups that a search is timing. They are derived, written and compiled in batches, and each is timed as soon as its compiler has finished. A batch
 * starts before the one in front has ended, so that no processor waits for the slowest kernel of a batch; groups are timed one by one.
 */
import { setTimeout } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { Subject } from '../../search/problem.js'
import { derivedOf, keysOf, type SearchStage, type Timed, withKernels } from './clock.js'
import { failureOf } from './failures.js'
import { type Built, timeLaunch } from './launch.js'

export interface QueueOptions {
  /** True once no further group is to be timed. */
  readonly isOver: () => boolean
  /** Called with each result. */
  readonly onTimed: (subject: Subject, timed: Timed) => void
  /** Kernels being compiled, and launches of compiled ones that wait to be timed, up to which more are added. */
  readonly busy: number
}

/** Pauses between two looks at the time. */
const pause = 200

export class TimingQueue {
  private readonly underway = new Set<string>()
  /** Launches whose kernel is being compiled, by its content. */
  private readonly unbuilt = new Map<string, Set<string>>()
  private readonly batches = new Set<Promise<void>>()
  private readonly ending = new AbortController()
  private readonly oneByOne = pLimit(1)
  private failure: { readonly error: unknown } | undefined
  private readonly stage: SearchStage
  private readonly options: QueueOptions

  constructor(stage: SearchStage, options: QueueOptions) {
    this.stage = stage
    this.options = options
  }

  /** Ids of launches that have no result yet. */
  get pending(): ReadonlySet<string> {
    return this.underway
  }

  /** Kernels that are being compiled. */
  get compiling(): number {
    return this.unbuilt.size
  }

  /** Starts a batch. Groups that cannot be derived have their result at once. */
  start(subjects: readonly Subject[]): void {
    const { stage, options, underway, ending } = this
    const signal = AbortSignal.any([stage.signal, ending.signal])
    const built = derivedOf(stage, subjects, options.onTimed)
    if (built.length === 0) return
    for (const { subject } of built) {
      const { id, content } = subject.launch
      underway.add(id)
      this.unbuilt.set(content, (this.unbuilt.get(content) ?? new Set()).add(id))
    }
    const batch = withKernels({ ...stage, signal }, built, async (bench, library) => {
      await Promise.all(
        built.map(async (each) => {
          const failure = await library.ensure(keysOf(each, bench)).then(
            () => undefined,
            (error: unknown) => ({ error }),
          )
          this.built(each.subject)
          await this.oneByOne(() => this.settle(each, failure, () => timeLaunch(bench, each)))
        }),
      )
    })
      .catch((error: unknown) => {
        if (!ending.signal.aborted) this.failure ??= { error }
      })
      .finally(() => {
        for (const { subject } of built) {
          underway.delete(subject.launch.id)
          this.built(subject)
        }
        this.batches.delete(batch)
      })
    this.batches.add(batch)
  }

  /**
   * Resolves once a launch more has its result and few are busy, or the time is over; at once if all have theirs.
   * @throws the signal's reason, and as `failureOf`
   */
  async next(): Promise<void> {
    const { underway, options } = this
    const before = underway.size
    const isBusy = (): boolean => {
      const waiting = underway.size - [...this.unbuilt.values()].reduce((sum, ids) => sum + ids.size, 0)
      return underway.size > 0 && (underway.size === before || this.unbuilt.size > options.busy || waiting > options.busy)
    }
    while (isBusy() && !options.isOver() && this.failure === undefined) await setTimeout(pause)
    if (this.failure !== undefined) throw this.failure.error
    this.stage.signal.throwIfAborted()
  }

  /** Stops the compilers of launches that have no result. */
  async close(): Promise<void> {
    this.ending.abort(new Error('the search is over'))
    await Promise.allSettled(this.batches)
  }

  private built({ launch: { content, id } }: Subject): void {
    const open = this.unbuilt.get(content)
    open?.delete(id)
    if (open?.size === 0) this.unbuilt.delete(content)
  }

  /** Times a group whose compiler has finished, unless the time is over by now. */
  private async settle(
    { subject }: Built,
    failure: { readonly error: unknown } | undefined,
    time: () => Promise<Timed>,
  ): Promise<void> {
    const { stage, options, underway, ending } = this
    if (ending.signal.aborted || options.isOver()) return
    const timed = failure === undefined ? await time().catch((error: unknown) => failureOf(error, stage.signal)) : undefined
    options.onTimed(subject, timed ?? failureOf(failure?.error, stage.signal))
    underway.delete(subject.launch.id)
  }
}
