/**
 * A process whose worker threads use the addon and end in every state. test/runtime/addon_threads.simt.test.ts runs it and looks at how it exits.
 * Its argument is JSON: the paths of the addon, of a plugin and of a kernel library, and how many threads end in each way.
 */
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const { addon, plugin, library, rounds, way } = isMainThread ? JSON.parse(process.argv[2]) : workerData
const forever = async (work) => {
  for (;;) await work()
}
const neverReturn = () => setInterval(() => undefined, 1000)

/** What a thread does before it says that it may be ended, and what it goes on with. */
const ways = {
  busy({ work }) {
    for (let i = 0; i < 4; i++) void forever(work)
    parentPort.postMessage('ready')
  },
  async closed({ work, device }) {
    await work()
    device.close()
    parentPort.postMessage('ready')
    neverReturn()
  },
  /** JavaScript runs without a pause, so that it is stopped inside calls of the addon. */
  calling({ device, buffer }) {
    parentPort.postMessage('ready')
    for (;;) {
      device.info()
      void buffer.read(0, 64)
    }
  },
  async idle({ work }) {
    await work()
    parentPort.postMessage('ready')
    neverReturn()
  },
  async returned({ work }) {
    await work()
    parentPort.postMessage('ready')
  },
  async exited({ work }) {
    for (let i = 0; i < 4; i++) void forever(work)
    await work()
    parentPort.postMessage('ready')
    process.exit()
  },
}

async function endOne(name) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { addon, plugin, library, way: name } })
  const ended = once(worker, 'exit')
  await once(worker, 'message')
  if (name !== 'returned' && name !== 'exited') await worker.terminate()
  await ended
}

async function useAddon() {
  const device = createRequire(import.meta.url)(addon).openDevice(plugin, 0)
  const buffer = device.allocate(4096)
  const slice = (offset) => ({ buffer, offset, bytes: 64 })
  const step = { kind: 'kernel', label: 'scale', library: device.loadLibrary(library), key: 'scale' }
  const program = device.program([{ ...step, buffers: [slice(0), slice(64)], dims: [16], attrs: [2] }])
  const work = () =>
    Promise.all([
      buffer.write(0, new Uint8Array(64)),
      program.run([{ to: slice(0), data: new Uint8Array(64) }], [slice(64)]),
      program.runAhead([slice(64)]),
      program.time(2, 0),
      buffer.read(0, 64),
    ])
  await ways[way]({ work, device, buffer })
}

if (isMainThread) {
  for (let round = 0; round < rounds; round++) await Promise.all(Object.keys(ways).map(endOne))
  console.log(`${rounds} rounds of ${Object.keys(ways).join(', ')}`)
} else {
  await useAddon()
}
