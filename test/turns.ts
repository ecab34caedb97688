/**
 * The share of kernel instances that a run of the tests tries. Instances of an op share their text up to types and fixed extents, so a third
 * of them by turns finds what all of them would: three commits in a row try each one. `HEDDLE_TURNS=all` tries all of them at once.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { KernelEntry } from '../src/emit/manifest.js'

/** Turns of an op with three instances or more. */
const most = 3

/** The number of commits up to this one, so that the next commit takes the next turn; 0 outside of a repository. */
function commits(): number {
  try {
    const cwd = fileURLToPath(new URL('..', import.meta.url))
    return Number(execFileSync('git', ['rev-list', '--count', 'HEAD'], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
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

/** A number that differs between ops, so that one turn takes f32 of some and f16 of others. */
const offsetOf = (op: string): number => [...op].reduce((sum, letter) => sum + letter.charCodeAt(0), 0)

/** Instances whose turn it is, at least one of each op. @param turn all of them if undefined */
export function inTurn<E extends Pick<KernelEntry, 'op' | 'key'>>(entries: readonly E[], turn: number | undefined): readonly E[] {
  if (turn === undefined) return entries
  const instances = new Map<string, E[]>()
  for (const entry of entries) instances.set(entry.op, [...(instances.get(entry.op) ?? []), entry])
  return [...instances].flatMap(([op, all]) => {
    const turns = Math.min(most, all.length)
    return all.filter((_, at) => at % turns === (turn + offsetOf(op)) % turns)
  })
}
