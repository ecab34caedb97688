/** Worker threads that end while they use the addon, terminated or on their own: their process continues. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { describe, expect, it } from 'vitest'
import { nativeFolder } from '../../src/runtime/addon.js'
import { buildFixture, plugins } from './addon_fixture.js'

const fixture = buildFixture()
const script = fileURLToPath(new URL('ended_threads.mjs', import.meta.url))

describe.each(plugins(fixture))('threads with the addon on %s', (_name, plugin) => {
  it('end in every state and do not affect the process', async () => {
    const said = { addon: join(nativeFolder(), 'heddle.node'), plugin, library: fixture, rounds: 5 }
    const { exitCode, signal, stdout, stderr } = await execa(process.execPath, [script, JSON.stringify(said)], { reject: false })
    expect({ exitCode, signal, stderr, stdout }).toEqual({
      exitCode: 0,
      signal: undefined,
      stderr: '',
      stdout: '5 rounds of busy, closed, calling, idle, returned, exited',
    })
  })
})
