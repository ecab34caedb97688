/**
 * Runs a command while folders are published on loopback: `node --import ./dist/register.js test/registry/run.ts DIR... -- COMMAND ARGUMENTS`.
 * Called by `.ci/tarball`. The command gets the current folder and environment, with `npm_config_registry`; its exit code is returned.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openRegistry } from './registry.js'

const separator = process.argv.indexOf('--')
const [command = '', ...args] = process.argv.slice(separator + 1)
const registry = await openRegistry(process.argv.slice(2, separator), fileURLToPath(new URL('../..', import.meta.url)))
try {
  const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, npm_config_registry: registry.url } })
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
} finally {
  await registry.close()
}
