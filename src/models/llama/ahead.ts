/**
 * The loop over steps of decoding. A run of steps is asked for before the one in front of it is over, so that the device goes from one to
 * the next while the host looks at what the last one left: whether all texts have ended is known a run late. The run that is under way by
 * then computes what it would for rows that ended beside others that go on: nothing of a text changes behind its end.
 */
/** What a run of steps left behind. */
export interface Advanced {
  /** True if every text has ended. */
  readonly ended: boolean
  /** Words of its steps, a row of them for each. */
  readonly words: Int32Array
  /** How unlikely the model found them, where that is asked for. */
  readonly losses?: Float32Array | undefined
}

/** Rows of texts that steps are taken of. */
export interface Stepped {
  readonly shape: { readonly rows: number; readonly steps: number; readonly perRun: number }
  /** Asks for the run that begins with a step, behind the runs asked for before; resolves when it is over. */
  advance(step: number, signal?: AbortSignal): Promise<Advanced>
  /** Ends the runs under way where they stand. */
  stop(): void
}

/** How far texts are. */
export interface Reached {
  /** Steps taken, those before the first run included. */
  readonly step: number
  /** Words of all steps so far, a row of them for each; of those taken before, -1. */
  readonly history: Int32Array
  /** How unlikely the model found them, where that is asked for. */
  readonly losses?: Float32Array | undefined
}

/** Runs that are asked for besides the one that is waited for. */
const ahead = 1

export interface Span {
  /** Steps taken before the first run, and the most that are wanted. */
  readonly from: number
  readonly most: number
  /** True if what is under way when all texts have ended is let run to its end: where the state it leaves is read. */
  readonly whole: boolean
}

/**
 * Takes steps until every text has ended, and yields after each run. What is under way when this ends, early or not, is nothing to anyone.
 * @throws the signal's reason, after the run under way at the latest
 */
export async function* runsAhead(
  rows: Stepped,
  { from, most, whole }: Span,
  signal: AbortSignal | undefined,
): AsyncGenerator<Reached, void> {
  const { rows: count, steps, perRun } = rows.shape
  const history = new Int32Array(steps * count).fill(-1)
  let found: Float32Array | undefined
  const asked: Promise<Advanced>[] = []
  let next = from
  const askFor = (): void => {
    for (; next < most && asked.length <= ahead; next += perRun) asked.push(rows.advance(next, signal))
  }
  try {
    askFor()
    for (let step = from; step < most; step += perRun) {
      const run = asked.shift()
      if (run === undefined) throw new Error('internal: no run of steps was asked for')
      const { ended, words, losses } = await run
      signal?.throwIfAborted()
      history.set(words, step * count)
      if (losses !== undefined) {
        found ??= new Float32Array(steps * count)
        found.set(losses, step * count)
      }
      if (!ended) askFor()
      yield { step: step + perRun, history, ...(found === undefined ? {} : { losses: found }) }
      if (ended) return
    }
  } finally {
    if (asked.length > 0 && !whole) rows.stop()
  }
}
