/**
 * Stop strings that end a generation. A stop string may be split over tokens, so the end of a text may be the beginning of one. Exactly that much
 * text is held back.
 */
import { usageError } from '../errors.js'

/** Text that may be shown after a piece. */
export interface Shown {
  /** Text in which no stop string can begin. */
  readonly text: string
  /** Stop string that ended the text; neither it nor any text after it is shown. */
  readonly stop?: string
}

export interface StopStrings {
  /** Takes the next piece. After a stop string, nothing more is shown. */
  push(piece: string): Shown
  /** Text that was held back, when no piece follows. */
  finish(): string
}

/** Limits of the list: each stop string is searched for in every piece. */
const mostStops = 64
const mostCharacters = 1024

/** @throws usage `generate.stop` for an invalid stop string, with the limits */
export function checkStops(stops: readonly string[]): void {
  if (!Array.isArray(stops) || stops.length > mostStops) {
    throw usageError(
      'generate.stop',
      `stop has ${Array.isArray(stops) ? stops.length : 'no'} texts, expected a list of at most ${mostStops}`,
    )
  }
  for (const [i, stop] of stops.entries()) {
    const refuse = (what: string) =>
      usageError('generate.stop', `stop ${i} ${what}, expected a text of 1 to ${mostCharacters} characters`)
    if (typeof stop !== 'string') throw refuse(`is of type ${typeof stop}`)
    if (stop === '') throw refuse('is empty')
    if (stop.length > mostCharacters) throw refuse(`has ${stop.length} characters`)
    // A lone surrogate never occurs in text, and would split a character that does.
    if (/\p{Surrogate}/u.test(stop)) throw refuse('holds half of a character')
  }
}

/**
 * Searches for stop strings in the pieces of one text. The first to be complete ends the text, and the longest of those that are complete at once.
 * The result does not depend on how the text is split.
 * @throws usage `generate.stop`
 */
export function stopStrings(stops: readonly string[]): StopStrings {
  checkStops(stops)
  let pending = ''
  let stopped = false
  return {
    push(piece) {
      if (stopped) return { text: '' }
      const text = pending + piece
      const found = firstComplete(text, stops)
      if (found !== undefined) {
        stopped = true
        pending = ''
        return { text: text.slice(0, found.at), stop: found.stop }
      }
      const safe = text.length - heldBack(text, stops)
      pending = text.slice(safe)
      return { text: text.slice(0, safe) }
    },
    finish() {
      const rest = pending
      pending = ''
      stopped = true
      return rest
    },
  }
}

interface Found {
  readonly stop: string
  readonly at: number
}

function firstComplete(text: string, stops: readonly string[]): Found | undefined {
  let first: Found | undefined
  const end = ({ stop, at }: Found): number => at + stop.length
  for (const stop of stops) {
    const at = text.indexOf(stop)
    if (at < 0) continue
    const found = { stop, at }
    if (first === undefined || end(found) < end(first) || (end(found) === end(first) && at < first.at)) first = found
  }
  return first
}

/** Number of characters at the end of a text with which a stop string may begin. */
function heldBack(text: string, stops: readonly string[]): number {
  const longest = Math.min(text.length, Math.max(0, ...stops.map(({ length }) => length - 1)))
  for (let length = longest; length > 0; length--) {
    const end = text.slice(text.length - length)
    if (stops.some((stop) => stop.length > length && stop.startsWith(end))) return length
  }
  return 0
}
