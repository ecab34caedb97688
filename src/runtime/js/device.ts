/**
 * The `js` device: runs the lowered IR of kernels in Node, without a compiler, an addon or a GPU. It computes in double precision and rounds when
 * it stores. It is for first results and for checks of the front end: it is slow, and it says nothing about the generated source.
 */
import { freemem, totalmem } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { environmentError, usageError } from '../../errors.js'
import type { NativeDevice, NativeDeviceInfo, NativeLibrary, NativeProgram, NativeSlice, NativeStep } from '../native.js'
import { type LoweredKernel, runKernel } from './kernel.js'
import { multiply } from './matmul.js'
import { type Memory, openMemory } from './memory.js'

/** Kernels of a library of this device, by key. */
const libraries = new WeakMap<NativeLibrary, ReadonlyMap<string, LoweredKernel>>()

/** A library whose kernels are looked up in `kernels` when they are launched. */
export function loweredLibrary(kernels: ReadonlyMap<string, LoweredKernel>): NativeLibrary {
  const library: NativeLibrary = {
    target: 'js',
    get kernels() {
      return [...kernels.values()].map(({ entry: { key, digest, buffers, dims, attrs } }) => ({
        key,
        digest,
        buffers: buffers.length,
        dims: dims.length,
        attrs: attrs.length,
      }))
    },
  }
  libraries.set(library, kernels)
  return library
}

const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0

const info = (): NativeDeviceInfo => ({
  kind: 'js',
  name: `JavaScript (Node ${process.versions.node})`,
  memoryBytes: totalmem(),
  memoryFreeBytes: freemem(),
  multiprocessors: 1,
  driverVersion: 0,
  runtimeVersion: 0,
  matmulVersion: 0,
})

export function jsDevice(): NativeDevice & { readonly kind: 'js' } {
  const memory = openMemory()
  return {
    kind: 'js',
    info,
    allocate: (bytes) => memory.allocate(bytes),
    loadLibrary(path) {
      throw environmentError('device.unavailable', `the js device loads no compiled library such as ${path}`)
    },
    program: (steps) => programOf(memory, steps),
    algorithms: async () => [],
    close: () => memory.close(),
  }
}

function runStep(step: NativeStep, bytesOf: (slice: NativeSlice) => Uint8Array): void {
  switch (step.kind) {
    case 'kernel': {
      const kernel = libraries.get(step.library)?.get(step.key)
      if (kernel === undefined) throw usageError('device.invalid', `${step.label}: there is no kernel ${step.key}`)
      runKernel(kernel, { ...step, buffers: step.buffers.map(bytesOf) })
      break
    }
    case 'matmul':
      multiply(step, bytesOf)
      break
    case 'fill':
      bytesOf(step.target).fill(step.value)
      break
    case 'copy':
      bytesOf(step.to).set(bytesOf(step.from))
  }
}

function programOf({ bytesOf, inOrder }: Memory, steps: readonly NativeStep[]): NativeProgram {
  for (const slice of steps.flatMap(slicesOf)) bytesOf(slice)
  const running = new Set<{ aborted: boolean }>()
  let begun = 0
  const submit = async <T>(work: (expectGoing: () => Promise<void>) => Promise<T>): Promise<T> => {
    const state = { aborted: false }
    running.add(state)
    // Other work of the process runs between two steps.
    const expectGoing = async (): Promise<void> => {
      await setImmediate()
      if (state.aborted) throw usageError('device.aborted', 'the run was aborted')
    }
    try {
      return await inOrder(() => work(expectGoing))
    } finally {
      running.delete(state)
    }
  }
  const runAll = async (expectGoing: () => Promise<void>, onStep?: (at: number, ms: number) => void): Promise<void> => {
    for (const [at, step] of steps.entries()) {
      await expectGoing()
      const start = performance.now()
      runStep(step, bytesOf)
      onStep?.(at, performance.now() - start)
    }
  }
  const results = (outputs: readonly NativeSlice[]): Uint8Array[] => outputs.map((slice) => bytesOf(slice).slice())
  return {
    steps: steps.length,
    captured: false,
    run(inputs, outputs, repeats = 1) {
      const given = inputs.map(({ to, data }) => ({ to, data: data.slice() }))
      return submit(async (expectGoing) => {
        for (const { to, data } of given) bytesOf(to).set(data)
        for (let repeat = 0; repeat < repeats; repeat++) await runAll(expectGoing)
        return results(outputs)
      })
    },
    runAhead(outputs) {
      begun += 1
      return submit(async (expectGoing) => {
        await runAll(expectGoing)
        return results(outputs)
      })
    },
    get begun() {
      return begun
    },
    begunAhead: 0,
    abort: () => {
      for (const state of running) state.aborted = true
    },
    capture: async () => undefined,
    time: (repeats, warmup) => submit((expectGoing) => totalTimes((see) => runAll(expectGoing, see), repeats, warmup)),
    profile: (repeats) =>
      submit(async (expectGoing) => {
        const times = steps.map((): number[] => [])
        for (let run = 0; run < repeats; run++) await runAll(expectGoing, (at, ms) => void times[at]?.push(ms))
        return Float64Array.from(times, (each) => median(each))
      }),
    release: () => undefined,
  }
}

/** Milliseconds of each of several runs, after some that are not measured. */
async function totalTimes(
  runAll: (onStep: (at: number, ms: number) => void) => Promise<void>,
  repeats: number,
  warmup: number,
): Promise<Float64Array> {
  const times: number[] = []
  for (let run = 0; run < warmup + repeats; run++) {
    let total = 0
    await runAll((_, ms) => {
      total += ms
    })
    if (run >= warmup) times.push(total)
  }
  return Float64Array.from(times)
}

function slicesOf(step: NativeStep): readonly NativeSlice[] {
  switch (step.kind) {
    case 'kernel':
      return step.buffers
    case 'matmul':
      return [step.a, step.b, step.out, step.epilogue?.bias, step.epilogue?.residual].flatMap((slice) => slice ?? [])
    case 'fill':
      return [step.target]
    case 'copy':
      return [step.from, step.to]
  }
}
