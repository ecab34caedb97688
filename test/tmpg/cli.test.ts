import { it } from 'vitest'
import { selftestCommand } from '../../src/cli/selftest.js'
import { benchCommand } from '../../src/cli/bench.js'
import { describeFailure } from '../../src/cli/failure.js'
import { useNativeOf } from '../../src/cli/pipeline.js'
import { appendFileSync, writeFileSync } from 'node:fs'
it('x', async () => {
  const f = '/tmp/g/cli.log'
  writeFileSync(f, '')
  const ctx = { root: '/work/main', signal: new AbortController().signal, verbose: false, out: (t: string) => appendFileSync(f, `OUT ${t}`), log: (t: string) => appendFileSync(f, t) }
  useNativeOf('/work/main')
  for (const line of (process.env.CMDS ?? '').split(';')) {
    const [verb, ...args] = line.trim().split(' ')
    const c = (verb === 'bench' ? benchCommand : selftestCommand)(() => ctx)
    for (const k of [c, ...c.commands]) (k as any).exitOverride().configureOutput({ writeErr: ctx.log })
    try { process.exitCode = undefined; await c.parseAsync(args, { from: 'user' }); appendFileSync(f, `exit ${process.exitCode}\n`) } catch (e) { appendFileSync(f, JSON.stringify(describeFailure(e, { verbose: false, cancelled: false })) + '\n') }
    process.exitCode = undefined
  }
}, 900000)
