/**
 * The share of like tests that one run tries: instances of an op differ in types and fixed extents, projects in what they show, and a third of
 * them at each commit finds what all of them would, since three commits in a row try each one. `HEDDLE_TURNS=all` tries all of them at once.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type FloatType, floatTypes } from '../src/checkpoint/convert.js'
import type { KernelEntry } from '../src/emit/manifest.js'

/** Turns of three things or more. */
const most = 3

/** The number of commits up to this one, so that the next commit takes the next turn; 0 outside of a repository. */
function commits(): number {
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  try {
    const printed = execFileSync('git', ['rev-list', '--count', 'HEAD'], {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return Number(printed)
  } catch {
    return 0
  }
}

/** The turn that the environment states, or the commit's; undefined for all of them. @throws for another value of `HEDDLE_TURNS` */
export function turnOf(stated = process.env.HEDDLE_TURNS): number | undefined {
  if (stated === 'all') return undefined
  if (stated === undefined || stated === '') return commits() % most
  if (!/^\d+$/.test(stated)) throw new Error(`expected HEDDLE_TURNS to be all or a number, got ${stated}`)
  return Number(stated) % most
}

/** Things whose turn it is, at least one of them. @param turn all of them if undefined */
export function inTurn<T>(things: readonly T[], turn = turnOf()): readonly T[] {
  if (turn === undefined) return things
  const turns = Math.min(most, things.length)
  return things.filter((_, at) => at % turns === turn % turns)
}

/** The first of things whose turn it is. @param at moves the turn, so that of several lists each takes another place @throws for an empty list */
export function oneInTurn<T>(things: readonly T[], at: number, turn = turnOf() ?? 0): T {
  const chosen = things[(turn + at) % things.length]
  if (chosen === undefined) throw new Error('nothing to choose from')
  return chosen
}

/**
 * Storage types that a run tries of models that are the same in all of them. One for all tests of a commit, so that they share what is compiled;
 * what has no turns is in f32.
 */
export const modelTypes = (): readonly FloatType[] => (turnOf() === undefined ? floatTypes : [oneInTurn(floatTypes, 0)])

/** A number that differs between ops, so that one turn takes f32 of some and f16 of others. */
const offsetOf = (op: string): number => [...op].reduce((sum, letter) => sum + letter.charCodeAt(0), 0)

/** Instances whose turn it is, at least one of each op. */
export function instancesInTurn<E extends Pick<KernelEntry, 'op'>>(entries: readonly E[], turn = turnOf()): readonly E[] {
  if (turn === undefined) return entries
  const instances = new Map<string, E[]>()
  for (const entry of entries) instances.set(entry.op, [...(instances.get(entry.op) ?? []), entry])
  return [...instances].flatMap(([op, all]) => inTurn(all, turn + offsetOf(op)))
}
