/**
 * Texts that end a generation. They may be split over tokens, so that the end of what came may be the beginning of one: that much is
 * held back, and no more.
 */
import { usageError } from '../errors.js'

/** What may be shown after a piece came. */
export interface Shown {
  /** Text that no stop string can begin in. */
  readonly text: string
  /** The stop string that ended the text; nothing of it, or behind it, is shown. */
  readonly stop?: string
}

export interface StopStrings {
  /** Takes the next piece. After a stop string has come, nothing more is shown. */
  push(piece: string): Shown
  /** What was held back, when no piece follows. */
  finish(): string
}

/** More would be a dictionary; each is looked for in every piece. */
const mostStops = 64
const mostCharacters = 1024

/** @throws usage `generate.stop` for a text that cannot be a stop string, naming it and what is allowed */
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
    // Half of a character never comes, and would split one that does.
    if (/\p{Surrogate}/u.test(stop)) throw refuse('holds half of a character')
  }
}

/**
 * Looks for texts in pieces of one text. Of several, the one that is complete first ends it, and of those that are complete at once the
 * longest: the result does not depend on how the text is split.
 * @throws usage `generate.stop`
 */
export function stopStrings(stops: readonly string[]): StopStrings {
  checkStops(stops)
  let held = ''
  let stopped = false
  return {
    push(piece) {
      if (stopped) return { text: '' }
      const text = held + piece
      const found = firstComplete(text, stops)
      if (found !== undefined) {
        stopped = true
        held = ''
        return { text: text.slice(0, found.at), stop: found.stop }
      }
      const safe = text.length - heldBack(text, stops)
      held = text.slice(safe)
      return { text: text.slice(0, safe) }
    },
    finish() {
      const rest = held
      held = ''
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

/** Characters at the end of a text that a stop string may begin with. */
function heldBack(text: string, stops: readonly string[]): number {
  const longest = Math.min(text.length, Math.max(0, ...stops.map(({ length }) => length - 1)))
  for (let length = longest; length > 0; length--) {
    const end = text.slice(text.length - length)
    if (stops.some((stop) => stop.length > length && stop.startsWith(end))) return length
  }
  return 0
}
