/** Files of tests whose turn it is not. */
import { byTurns } from './by_turns.js'
import { changedFiles, fileTurn } from './turns.js'

/** Empty if `HEDDLE_TURNS` sets no turn: a caller that runs vitest directly names its files. Changed files always run. */
export function waitingFiles(): readonly string[] {
  const turn = process.env.HEDDLE_TURNS === undefined ? undefined : fileTurn()
  if (turn === undefined) return []
  const changed = new Set(changedFiles())
  return byTurns.flatMap((files, at) => (at === turn ? [] : files.filter((file) => !changed.has(file))))
}
