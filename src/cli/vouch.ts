/**
 * A project's own generated text in a fresh clone: nothing on this machine says who wrote it, so that it is compared with what its specs say now, and
 * counts as this user's where both are the same. Runs in front of verbs that are about specs, which run them anyway; verbs that run models never do.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { installation } from '../toolchain/installation.js'
import { isTrusted } from '../toolchain/own_source.js'
import type { CliContext } from './context.js'

/** Verbs that read the project's specs and its generated text. */
const ofSpecs = ['repro', 'check', 'inspect', 'plan', 'explore', 'bench', 'tune', 'build', 'export', 'bundle']

/** @param words verbs of the command line, such as `plan show`; those that `bench` has for shipped models have no use for specs */
export const isOfSpecs = ([verb = '', ...parts]: readonly string[]): boolean =>
  ofSpecs.includes(verb) && !(verb === 'bench' && parts.length > 0)

/**
 * Records the project's generated text as this user's where its specs say the same.
 * @throws finding `gen.check` naming what differs; errors of the front end
 */
export async function vouch(context: CliContext, specs = 'specs'): Promise<void> {
  const { generated, portable } = installation(context.root)
  const [own] = generated
  if (own === undefined || portable || !existsSync(join(context.root, specs))) return
  const path = join(own, 'manifest.json')
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined || isTrusted(path, text)) return
  context.log(`${own} is not known to be yours: comparing it with what ${specs} say\n`)
  const { gen } = await import('./gen.js')
  await gen({ check: true, specs }, context)
}
