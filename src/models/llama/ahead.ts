/**
 * Decoding loop. Each run of steps is enqueued before the previous one finishes, so that the device continues while the host reads the
 * results of the last one: the end of all texts is known one run late. The run in progress by then treats all rows like rows that ended
 * before others: nothing of a text changes after its end.
 */
/** Results of a run of steps. */
export interface Advanced {
  /** True if every text has ended. */
  readonly ended: boolean
  /** Tokens chosen by its steps, one row per step. */
  readonly words: Int32Array
  /** Negative log-likelihoods of the tokens, if requested. */
  readonly losses?: Float32Array | undefined
}

/** Rows of texts that are decoded step by step. */
export interface Stepped {
  readonly shape: { readonly rows: number; readonly steps: number; readonly perRun: number }
  /** Enqueues the run that begins with a step, after earlier runs; resolves when it is done. */
  advance(step: number, signal?: AbortSignal): Promise<Advanced>
  /** Aborts the runs in progress. */
  stop(): void
}

/** Progress of the texts. */
export interface Reached {
  /** Steps taken, those before the first run included. */
  readonly step: number
  /** Tokens of all steps so far, one row per step; -1 for steps before the first run. */
  readonly history: Int32Array
  /** Negative log-likelihoods of the tokens, if requested. */
  readonly losses?: Float32Array | undefined
}

/** Runs that are enqueued beyond the one being awaited. */
const ahead = 1

export interface Span {
  /** Steps taken before the first run. */
  readonly from: number
  /** Maximum number of steps. */
  readonly most: number
  /** True if the run in progress when all texts have ended may finish, because its final state is read. */
  readonly whole: boolean
}

/**
 * Takes steps until every text has ended, and yields after each run. Results of runs still in progress at the end are discarded.
 * @throws the signal's reason, after the run in progress at the latest
 */
export async function* runsAhead(
  rows: Stepped,
  { from, most, whole }: Span,
  signal: AbortSignal | undefined,
): AsyncGenerator<Reached, void> {
  const { rows: count, steps, perRun } = rows.shape
  const history = new Int32Array(steps * count).fill(-1)
  let found: Float32Array | undefined
  const pending: Promise<Advanced>[] = []
  let next = from
  const enqueue = (): void => {
    for (; next < most && pending.length <= ahead; next += perRun) pending.push(rows.advance(next, signal))
  }
  try {
    enqueue()
    for (let step = from; step < most; step += perRun) {
      const run = pending.shift()
      if (run === undefined) throw new Error('internal: no run of steps is pending')
      const { ended, words, losses } = await run
      signal?.throwIfAborted()
      history.set(words, step * count)
      if (losses !== undefined) {
        found ??= new Float32Array(steps * count)
        found.set(losses, step * count)
      }
      if (!ended) enqueue()
      yield { step: step + perRun, history, ...(found === undefined ? {} : { losses: found }) }
      if (ended) return
    }
  } finally {
    if (pending.length > 0 && !whole) rows.stop()
  }
}
