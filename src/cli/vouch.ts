/**
 * Trust of a project's generated source in a fresh clone. Its author is unknown on this machine, so it is compared with the output of its
 * specs, and trusted if both are equal. Runs before verbs that execute the specs anyway; verbs that run models never do.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { installation } from '../toolchain/installation.js'
import { isTrusted } from '../toolchain/own_source.js'
import type { CliContext } from './context.js'

/** Verbs that read the project's specs and its generated source. */
const ofSpecs = ['repro', 'check', 'inspect', 'plan', 'explore', 'bench', 'tune', 'build', 'export', 'bundle']

/** @param words verbs of the command line, such as `plan show`; the verbs of `bench` for shipped models do not use specs */
export const isOfSpecs = ([verb = '', ...parts]: readonly string[]): boolean =>
  ofSpecs.includes(verb) && !(verb === 'bench' && parts.length > 0 && parts[0] !== 'suite')

/**
 * Records the project's generated source as trusted if its specs compile to the same.
 * @throws finding `gen.check` naming files that differ; errors of the front end
 */
export async function vouch(context: CliContext, specs = 'specs'): Promise<void> {
  const { generated, portable } = installation(context.root)
  const [own] = generated
  if (own === undefined || portable || !existsSync(join(context.root, specs))) return
  const path = join(own, 'manifest.json')
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined || isTrusted(path, text)) return
  context.log(`${own} is not known to be yours: comparing it with the output of ${specs}\n`)
  const { gen } = await import('./gen.js')
  await gen({ check: true, specs }, context)
}
