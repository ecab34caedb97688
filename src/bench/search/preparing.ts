/** Kernels that are compiled ahead of the plans that launch them, while other plans are timed. A plan that needs one sooner waits for it. */
import type { Subject } from '../../search/problem.js'
import { derivedOf, keysOf, type SearchStage, withKernels } from './clock.js'

export class Preparing {
  private readonly ending = new AbortController()
  private readonly begun = new Set<string>()
  private readonly batches: Promise<void>[] = []
  private readonly stage: SearchStage
  private readonly built: Set<string>

  /** @param built contents of kernels that are compiled, to which others are added */
  constructor(stage: SearchStage, built: Set<string>) {
    this.stage = stage
    this.built = built
  }

  /** Begins to compile the kernels of groups. One that fails does so again where it is needed. */
  start(subjects: readonly Subject[]): void {
    const { begun, built, ending, stage } = this
    const open = new Map(subjects.map((subject) => [subject.launch.content, subject]))
    const missing = [...open.values()].filter(({ launch: { content } }) => !built.has(content) && !begun.has(content))
    for (const { launch } of missing) begun.add(launch.content)
    const derived = derivedOf(stage, missing, ({ launch }) => void built.add(launch.content))
    if (derived.length === 0) return
    const signal = AbortSignal.any([stage.signal, ending.signal])
    const batch = withKernels({ ...stage, signal }, derived, async (bench, library) => {
      await Promise.allSettled(
        derived.map(async (each) => {
          await library.ensure(keysOf(each, bench)).catch(() => undefined)
          built.add(each.subject.launch.content)
        }),
      )
    })
    this.batches.push(batch.catch(() => undefined))
  }

  /** Stops the compilers that still run. */
  async close(): Promise<void> {
    this.ending.abort(new Error('the search is over'))
    await Promise.all(this.batches)
  }
}
