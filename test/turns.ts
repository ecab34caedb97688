/**
 * Rotation of similar tests over commits. One run executes a third of the instances of each changed op and of every other one of the rest, so six commits in
 * a row cover all; a quarter of the files that take seconds (by_turns.ts), and a third of the cases that such a file lists, so twelve commits do.
 * Changed files always run. `npm run test:all` runs everything at once.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type FloatType, floatTypes } from '../src/checkpoint/convert.js'
import type { KernelEntry } from '../src/emit/manifest/manifest.js'

/** Turns of three things or more. */
const most = 3
/** Turns of files. */
const fileTurns = 4

const git = (...argv: readonly string[]): string => {
  try {
    const cwd = fileURLToPath(new URL('..', import.meta.url))
    return execFileSync('git', argv, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return ''
  }
}

/** The number of commits up to this one, so that the next commit takes the next turn; 0 outside of a repository. */
const commits = (): number => Number(git('rev-list', '--count', 'HEAD'))

/** Files, relative to the root, that changed in the last commit or since. */
export const changedFiles = (): readonly string[] =>
  `${git('diff', '--name-only', 'HEAD~1')}${git('ls-files', '--others', '--exclude-standard')}`.split('\n').filter(Boolean)

/**
 * The number that turns are counted by: the environment's, or that of commits; undefined for all of them.
 * @throws for another value of `HEDDLE_TURNS` than `all`, `commit` and a number
 */
function count(stated: string | undefined): number | undefined {
  if (stated === 'all') return undefined
  if (stated === undefined || stated === '' || stated === 'commit') return commits()
  if (!/^\d+$/.test(stated)) throw new Error(`expected HEDDLE_TURNS to be all, commit or a number, got ${stated}`)
  return Number(stated)
}

/** The turn of instances: another at each commit. @throws for another value of `HEDDLE_TURNS` */
export function turnOf(stated = process.env.HEDDLE_TURNS): number | undefined {
  const at = count(stated)
  return at === undefined ? undefined : at % most
}

/** The turn of files: another at each commit. @throws for another value of `HEDDLE_TURNS` */
export function fileTurn(stated = process.env.HEDDLE_TURNS): number | undefined {
  const at = count(stated)
  return at === undefined ? undefined : at % fileTurns
}

/** The turn of lists of cases: another once each file has had its turn. */
export function listTurn(stated = process.env.HEDDLE_TURNS): number | undefined {
  const at = count(stated)
  return at === undefined ? undefined : Math.floor(at / fileTurns) % most
}

/** A seed that differs per commit; 0 if everything runs at once. @throws for another value of `HEDDLE_TURNS` */
export const seedOfTurn = (stated = process.env.HEDDLE_TURNS): number => count(stated) ?? 0

/** Things whose turn it is, at least one of them. @param turn all of them if undefined */
export function inTurn<T>(things: readonly T[], turn = listTurn()): readonly T[] {
  if (turn === undefined) return things
  const turns = Math.min(most, things.length)
  return things.filter((_, at) => at % turns === turn % turns)
}

/** Seeds from 1 to `last` whose turn it is. */
export const seedsInTurn = (last: number): readonly number[] => inTurn(Array.from({ length: last }, (_, at) => at + 1))

/** The first of things whose turn it is. @param at moves the turn, so that of several lists each takes another place @throws for an empty list */
export function oneInTurn<T>(things: readonly T[], at: number, turn = listTurn() ?? 0): T {
  const chosen = things[(turn + at) % things.length]
  if (chosen === undefined) throw new Error('nothing to choose from')
  return chosen
}

/**
 * Storage types that a run tries for models whose behaviour does not depend on them. All tests of a commit use the same one, so that they share
 * compiled kernels; tests outside of the rotation use f32.
 */
export const modelTypes = (): readonly FloatType[] => (listTurn() === undefined ? floatTypes : [oneInTurn(floatTypes, 0)])

/** A number that differs between ops, so that one turn takes f32 of some and f16 of others. */
const offsetOf = (op: string): number => [...op].reduce((sum, letter) => sum + letter.charCodeAt(0), 0)

/** True if it is the turn of an op, one of three. */
export const isTurnOf = (op: string, turn = turnOf()): boolean => turn === undefined || offsetOf(op) % most === turn

type Instance = Pick<KernelEntry, 'op' | 'file'>

/** Parts of every kernel on the CPU device, or of every comparison. */
const common = /^(native\/(device|include|simt)|src\/verify)\//

/** Recognises instances whose source changed; all of them if a part of every kernel did. @param files relative to the root */
export function changedInstances(files: readonly string[] = changedFiles()): (entry: Instance) => boolean {
  const [all, changed] = [files.some((file) => common.test(file)), new Set(files)]
  return ({ file }) => all || changed.has(`generated/${file}`)
}

/**
 * Instances whose turn it is: at least one of each op of which one changed, and of half of the others. A third of an op's instances are tried at once.
 * @param at number that turns are counted by; all instances if undefined
 */
export function instancesInTurn<E extends Instance>(
  entries: readonly E[],
  at = count(process.env.HEDDLE_TURNS),
  isChanged = changedInstances(),
): readonly E[] {
  if (at === undefined) return entries
  const instances = new Map<string, E[]>()
  for (const entry of entries) instances.set(entry.op, [...(instances.get(entry.op) ?? []), entry])
  return [...instances].flatMap(([op, all]) => {
    const turn = at + offsetOf(op)
    if (all.some(isChanged)) return inTurn(all, turn)
    return turn % 2 === 0 ? inTurn(all, turn / 2) : []
  })
}
