/** Verbs on a device of another machine: they say what they say here, whatever reaches it. The CPU device is on both ends. */
import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDevice, tensor, toNumbers } from '../../../src/runtime/api/index.js'
import { aboutMachine, openRemote } from '../../../src/runtime/remote/open.js'
import { checkAbuse } from '../../../src/verify/abuse.js'
import { heddle, punctuationModel, repository } from '../../cli/host.js'
import { shift } from '../../projects/mixer/specs/ops.js'
import { boxOf, elsewhere, type Far, farMachine, partOf, relayOf, shapeOf, sshOf } from './far.js'

let root: string
let far: Far
beforeAll(async () => {
  far = await farMachine()
  root = await mkdtemp(join(repository, '.heddle', 'on-'))
  await cp(join(repository, 'test/projects/mixer/specs'), join(root, 'specs'), { recursive: true })
  expect(await heddle(['gen'], root)).toMatchObject({ exitCode: 0 })
})
afterAll(() => Promise.all([root, far.home].map((each) => rm(each, { recursive: true }))))

const check = ['check', 'shift', '--device', 'simt', '--no-nvcc']
const sentBytes = (log: string): number => {
  const [, count = '', unit = ''] = /: sent ([\d.]+) (kB|MB)/.exec(log) ?? []
  return Number(count) * (unit === 'MB' ? 1e6 : 1e3)
}

test('check says what it says here; a repeat of a changed op sends under 200 kB', async () => {
  const here = await heddle(check, root)
  expect(here).toMatchObject({ exitCode: 0, out: '1036 passed, 0 failed\n' })
  const there = await heddle([...check, '--on', far.on], root)
  expect(there).toMatchObject({ exitCode: 0, out: here.out })
  expect(there.log).toContain(`sending node, agent, native to ${far.on}`)
  expect(shapeOf(there.log)).toEqual(shapeOf(here.log))
  // Node, the addon, libraries and inputs: the count sees them.
  expect(sentBytes(there.log)).toBeGreaterThan(10e6)
  const ops = join(root, 'specs/ops.ts')
  const text = await readFile(ops, 'utf8')
  await writeFile(ops, text.replace('x(r, c) + by(c)', 'x(r, c) - by(c)'))
  const again = await heddle([...check, '--on', far.on], root)
  await writeFile(ops, text)
  expect(again).toMatchObject({ exitCode: 0, out: here.out })
  expect(sentBytes(again.log)).toBeGreaterThan(60e3)
  expect(sentBytes(again.log)).toBeLessThan(200e3)
  // Nothing is left there but the cache.
  expect(await readdir(far.home)).toEqual(['.cache', 'bin'])
  expect(await readdir(join(far.home, '.cache'))).toEqual(['heddle'])
})

test('a wrong kernel fails there as here, with a reproduction that names the machine', async () => {
  const wrong = join(root, 'generated/cuda/shift__f32.cu')
  const text = await readFile(wrong, 'utf8')
  const changed = text.replace('y_c1[i] = x_c1[i] +', 'y_c1[i] = x_c1[i] + (start > 9200 ? 1 : 0) +')
  expect(changed).not.toBe(text)
  await writeFile(wrong, changed)
  const argv = ['check', 'shift', '--dtype', 'f32', '--device', 'simt', '--no-nvcc', '--generated']
  const [here, there] = [await heddle(argv, root), await heddle([...argv, '--on', far.on], root)]
  await writeFile(wrong, text)
  expect([here.exitCode, there.exitCode]).toEqual([1, 1])
  expect(there.log).toContain(`--device simt --on '${far.on}' --generated`)
  expect(shapeOf(there.log.replace(` --on '${far.on}'`, ''))).toEqual(shapeOf(here.log))
})

test('bench says what it says here', async () => {
  const argv = ['bench', 'pieces', '--shape', 'rows=2,cells=8,parts=2', '--repeats', '4', '--device', 'simt']
  const [here, there] = [await heddle(argv, root), await heddle([...argv, '--on', far.on], root)]
  expect({ ...here, out: '', log: '' }).toEqual({ exitCode: 0, out: '', log: '' })
  expect(there.exitCode).toBe(0)
  // A floor is memory or arithmetic, a slowest step one of several, as they are measured.
  const lines = (text: string): string[] => shapeOf(text.replace(/\(memory\)|\(arithmetic\)|│ [^│]*│\n/g, ''))
  expect(lines(there.out)).toEqual(lines(here.out))
})

test('doctor says what the machine is, and who has its device', async () => {
  const quiet = await heddle(['doctor', '--on', far.on])
  expect(quiet).toMatchObject({ exitCode: 0 })
  expect(quiet.out).toMatch(/^ok {2}machine +.*linux-x64, glibc \d/m)
  expect(quiet.out).toContain(far.cache)
  const line = (text: string) => /^.*device simt.*$/m.exec(text)?.[0].replace(/ +/g, ' ')
  expect(line(quiet.out)).toBe(line((await heddle(['doctor'])).out))
  expect(quiet.out).not.toContain('in use')
  const device = await openRemote('simt', { on: far.on, who: 'bench of a test' })
  const busy = await heddle(['doctor', '--on', far.on])
  const refused = await heddle([...check, '--on', far.on], root)
  device.close()
  expect(busy.out).toMatch(/simt in use +by \w+: bench of a test, process \d+ since [\d: -]+ UTC/)
  expect(refused).toMatchObject({ exitCode: 3 })
  expect(refused.log).toMatch(/error\[remote.busy\]: simt on .* is in use by \w+: bench of a test, process \d+/)
  expect(refused.log).toContain('hint: wait for it, or name another device with --device')
})

test('misuse of the device is refused as here, and leaves it usable', async () => {
  const device = await openRemote('simt', { on: far.on })
  const results = await checkAbuse(device)
  device.close()
  expect(results.filter(({ passed }) => !passed)).toEqual([])
})

test('inputs that were an output, that repeat, and that are longer than a piece arrive in order', async () => {
  for (const isFirst of [true, false]) {
    const device = await openRemote('simt', { on: far.on })
    const bytes = 9 * 2 ** 20
    const buffer = device.allocate(bytes)
    const data = new Uint8Array(bytes)
    for (let i = 0; i < bytes; i++) data[i] = i * 31 + (i >> 9)
    const fill = { kind: 'fill', label: 'fill', target: { buffer, offset: 4096, bytes: 4096 }, value: 7 } as const
    const whole = { buffer, offset: 0, bytes }
    const part = { buffer, offset: 0, bytes: 8192 }
    const program = device.program([fill])
    // Not awaited one by one: the far side has to handle them in order, although it asks for bytes of some.
    const [, long, short] = await Promise.all([
      buffer.write(8192, data.subarray(8192)),
      program.run([{ to: whole, data }], [whole]),
      program.run([{ to: part, data: data.subarray(0, 8192) }], [part]),
    ])
    const filled = long[0]?.subarray(4096, 8192)
    expect(Buffer.compare(long[0]?.subarray(8192) ?? data, data.subarray(8192)), `first ${isFirst}`).toBe(0)
    expect(Buffer.compare(short[0]?.subarray(0, 4096) ?? data, data.subarray(0, 4096))).toBe(0)
    expect(Buffer.compare(short[0]?.subarray(4096) ?? data, filled ?? data)).toBe(0)
    expect(Buffer.compare(filled ?? data, data.subarray(4096, 8192))).not.toBe(0)
    program.release()
    await expect(program.run([], [])).rejects.toMatchObject({ code: 'device.closed' })
    device.close()
    await expect(buffer.read(0, 8)).rejects.toMatchObject({ code: 'device.closed' })
  }
})

test('a client of containers, ssh and a slow link change nothing', async () => {
  const argv = ['check', 'shift', '--dtype', 'f32', '--device', 'simt', '--no-nvcc']
  const here = await heddle(argv, root)
  const box = await heddle([...argv, '--on', `${await boxOf(far)} exec -i gpu`], root)
  expect(box).toMatchObject({ exitCode: 0, out: here.out })
  await sshOf(far)
  for (const on of ['me@gpu', 'env LANG=C ssh -T gpu']) {
    const { exitCode, out, log } = await elsewhere([...argv, '--on', on], root, far.bin)
    expect({ exitCode, out, log }).toMatchObject({ exitCode: 0, out: here.out })
  }
  const slow = await heddle([...argv, '--on', (await relayOf(far, 'slow')).on], root)
  expect(slow).toMatchObject({ exitCode: 0, out: here.out })
})

test('of several machines one may fail: check has a line, and bench a column for each', async () => {
  await sshOf(far)
  const checked = await elsewhere(
    ['check', 'shift', '--dtype', 'f32', '--device', 'simt', '--no-nvcc', '--on', 'gpu,away'],
    root,
    far.bin,
  )
  expect(checked).toMatchObject({ exitCode: 3, out: 'gpu: 332 passed, 0 failed\naway: failed, remote.start\n' })
  expect(checked.log).toContain('Connection refused')
  const box = `${await boxOf(far)} exec -i gpu`
  const argv = ['bench', 'pieces', '--shape', 'rows=2,cells=8,parts=2', '--repeats', '2', '--device', 'simt']
  const timed = await heddle([...argv, '--on', far.on, '--on', box], root)
  expect(timed, timed.log).toMatchObject({ exitCode: 0 })
  expect(timed.out).toContain(`│ ${far.on} us │ ${box} us │`)
  expect(timed.out).toMatch(/│ rows=2,cells=8,parts=2 │ unfused +│ [\d.]+ +│ [\d.]+ +│/)
})

test('a changed part is sent alone, and the former one stays', async () => {
  const agent = await partOf(far, 'agent')
  const former = agent.replace(/agent-.*/, 'agent-former')
  await rename(agent, former)
  const { exitCode, log } = await heddle([...check, '--dtype', 'f32', '--on', far.on], root)
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
  expect(log).toContain('sending agent to')
  expect(await partOf(far, 'node')).toContain('node-')
  expect((await readdir(far.cache)).filter((name) => name.startsWith('agent-'))).toHaveLength(2)
  expect(await aboutMachine({ on: far.on })).toMatchObject({ cache: far.cache })
})

test('repro, run, tune and search take a device of another machine', async () => {
  const on = ['--device', 'simt', '--on', far.on]
  const written = join(root, 'repro')
  const repro = await heddle(['repro', 'shift', '--dtype', 'f32', '--out', written, ...on], root)
  expect(repro).toMatchObject({ exitCode: 0 })
  expect(repro.out).toMatch(/^ok {3}shift__f32 .*elements equal/)
  const text = ['run', punctuationModel, '--text', 'and he said I know not', '--device', 'simt']
  expect((await heddle([...text, '--on', far.on], root)).out).toBe((await heddle(text, root)).out)
  const tune = await heddle(
    ['tune', '--kernels', 'shift', '--lengths', '64', '--rows', '4', '--dtype', 'f32', '--repeats', '3', ...on],
    root,
  )
  expect(tune).toMatchObject({ exitCode: 0 })
  expect(tune.out).toMatch(/│ shift f32 │ 64 /)
  const search = [
    'search',
    'pieces',
    '--shape',
    'rows=4,cells=16,parts=2',
    '--dtype',
    'f32',
    '--minutes',
    '1',
    '--repeats',
    '3',
    ...on,
  ]
  const searched = await heddle(search, root)
  expect(searched).toMatchObject({ exitCode: 0 })
  expect(searched.out).toMatch(/\d+ of \d+ launches measured/)
})

test('openDevice opens a device of another machine', async () => {
  const device = await openDevice('simt', { root, on: far.on })
  const [x, by] = [tensor('f32', [2, 2], [1, 2, 3, 4]), tensor('f32', [2], [10, 20])]
  const { y } = await device.call(shift, { x, by })
  expect([...toNumbers(y)]).toEqual([11, 22, 13, 24])
  await device.close()
  await expect(openDevice('js', { root, on: far.on })).rejects.toMatchObject({ code: 'remote.device' })
})
