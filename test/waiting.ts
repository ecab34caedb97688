/** Files of tests whose turn it is not. */
import { byTurns } from './by_turns.js'
import { changedFiles, fileTurn } from './turns.js'

/** None where `HEDDLE_TURNS` states no turn: whoever runs vitest itself asks for files by name. What has changed waits for no turn. */
export function waitingFiles(): readonly string[] {
  const turn = process.env.HEDDLE_TURNS === undefined ? undefined : fileTurn()
  if (turn === undefined) return []
  const changed = new Set(changedFiles())
  return byTurns.flatMap((files, at) => (at === turn ? [] : files.filter((file) => !changed.has(file))))
}
