/** A loaded model: one program per combination of sizes, over the same weights and states, in an LRU cache. */
import { usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import { abortable } from '../abortable.js'
import type { NativeBuffer, NativeSlice } from '../native.js'
import { buildProgram, type Program } from '../program.js'
import { type CheckedRun, checkRun, type ModelParts, type StateParts, snapshot } from './check_run.js'
import { DeviceTensor, type Form } from './device_tensor.js'
import { bytesIn, formBytes, layoutOf, tensorIn } from './form.js'
import { checkGiven } from './given.js'
import type { ModelRunOptions, ModelState } from './model_types.js'
import { checkOptions } from './options.js'
import type { Tensor } from './tensor.js'

/** Capacity of the cache of programs. */
const maxPrograms = 8

export class LoadedModel {
  readonly name: string
  readonly plan: string
  readonly planReason: string
  readonly types: Readonly<Record<string, DType>>
  readonly states: Readonly<Record<string, ModelState>>
  readonly #parts: ModelParts
  readonly #programs = new Map<string, Program>()
  #closed = false

  constructor(parts: ModelParts) {
    this.#parts = parts
    this.name = parts.source.name
    this.plan = parts.source.plan.name
    this.planReason = parts.source.plan.reason
    this.types = parts.types
    this.states = Object.fromEntries(Object.entries(parts.states).map(([name, state]) => [name, this.#stateOf(name, state)]))
  }

  async run(given: unknown, options: ModelRunOptions = {}): Promise<Record<string, Tensor<DType> | DeviceTensor>> {
    this.#expectOpen('run')
    checkOptions('run', `${this.name}.run`, ['keep', 'signal'], options)
    const { signal, keep = false } = options
    signal?.throwIfAborted()
    const { core } = this.#parts
    const checked = checkRun(this.#parts, given)
    const memory = Object.entries(checked.inputs).flatMap(([name, tensor]) =>
      tensor instanceof DeviceTensor ? [[name, tensor.retain(`${this.name}: ${name}`, core)] as const] : [],
    )
    const inputSlices = new Map(memory.map(([name, { slice }]) => [name, slice]))
    try {
      const program = this.#programs.get(checked.key)
      if (program !== undefined && !core.waiting)
        return await core.run(() => this.#start(program, checked, inputSlices, keep, signal))
      const waiting = { ...checked, inputs: snapshot(checked.inputs) }
      const ready = async (): Promise<void> => {
        await this.#built(checked)
        signal?.throwIfAborted()
      }
      return await core.run(async () => {
        const built = this.#programs.get(checked.key)
        if (built === undefined) throw usageError('model.closed', `${this.name}.run: the model was closed`)
        return this.#start(built, waiting, inputSlices, keep, signal)
      }, ready)
    } finally {
      for (const [, each] of memory) each.release()
    }
  }

  async *stream(inputs: Iterable<unknown> | AsyncIterable<unknown>, options: ModelRunOptions = {}) {
    checkOptions('run', `${this.name}.stream`, ['keep', 'signal'], options)
    for await (const each of inputs) {
      options.signal?.throwIfAborted()
      yield await this.run(each, options)
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    const finish = async (): Promise<void> => {
      for (const program of this.#programs.values()) program.release()
      this.#programs.clear()
      this.#parts.release()
    }
    // After all work requested before. No caller awaits the release, so its errors are dropped.
    void this.#parts.core.run(finish).catch(() => undefined)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #expectOpen(what: string): void {
    this.#parts.core.expectOpen(`${this.name}.${what}`)
    if (this.#closed) throw usageError('model.closed', `${this.name}.${what}: the model was closed`, { hint: 'load it again' })
  }

  /** Program for the given sizes, built at first use. */
  async #built({ dims, key }: CheckedRun): Promise<Program> {
    const known = this.#programs.get(key)
    if (known !== undefined) return known
    const { session, source, types, states } = this.#parts
    const programStates = Object.fromEntries(
      Object.entries(states).map(([name, { tensor, next }]) => [name, { tensor, ...(next === undefined ? {} : { next }) }]),
    )
    const program = await buildProgram({
      session,
      applications: source.applications,
      inputs: Object.keys(source.inputs).filter((name) => states[name] === undefined),
      outputs: [...new Set(Object.values(source.outputs))],
      states: programStates,
      dims,
      types,
    })
    this.#programs.set(key, program)
    const [oldest] = this.#programs.keys()
    if (this.#programs.size > maxPrograms && oldest !== undefined) {
      this.#programs.get(oldest)?.release()
      this.#programs.delete(oldest)
    }
    return program
  }

  async #start(
    program: Program,
    { inputs, key }: CheckedRun,
    inputSlices: ReadonlyMap<string, NativeSlice>,
    keep: boolean,
    signal: AbortSignal | undefined,
  ): Promise<Record<string, Tensor<DType> | DeviceTensor>> {
    const { core, source, layouts } = this.#parts
    // Moves the program to the end of the map: most recently used last.
    this.#programs.delete(key)
    this.#programs.set(key, program)
    const forms = Object.fromEntries(
      Object.entries(source.outputs).map(([name, wire]) => [name, { wire, form: this.#form(program.outputs[wire], name) }]),
    )
    const buffers: NativeBuffer[] = []
    const allocate = (bytes: number): NativeSlice => {
      const buffer = core.native.allocate(Math.max(bytes, 1))
      buffers.push(buffer)
      return { buffer, offset: 0, bytes }
    }
    try {
      const into: Record<string, NativeSlice> = keep
        ? Object.fromEntries(
            [...new Map(Object.values(forms).map(({ wire, form }) => [wire, form]))].map(([wire, form]) => [
              wire,
              allocate(formBytes(form)),
            ]),
          )
        : {}
      const given = Object.fromEntries(
        Object.entries(inputs).map(([name, tensor]) => [
          name,
          tensor instanceof DeviceTensor
            ? (inputSlices.get(name) ?? new Uint8Array())
            : bytesIn(tensor, layoutOf(layouts, source.inputs[name]?.layout ?? 'row', tensor.shape.length)),
        ]),
      )
      const results = await abortable(program, signal, () => program.run(given, { into }))
      // Two results that name one value share a tensor.
      const made = new Map<string, Tensor<DType> | DeviceTensor>()
      for (const { wire, form } of Object.values(forms)) {
        const slice = into[wire]
        const bytes = results[wire] ?? new Uint8Array()
        if (!made.has(wire)) made.set(wire, slice === undefined ? tensorIn(form, bytes) : new DeviceTensor(form, core, slice))
      }
      return Object.fromEntries(
        Object.entries(forms).flatMap(([name, { wire }]) => [[name, made.get(wire) ?? missingOutput(name)] as const]),
      )
    } catch (error) {
      for (const buffer of buffers) buffer.release()
      throw error
    }
  }

  #form(info: Program['outputs'][string] | undefined, name: string): Form {
    if (info === undefined) missingOutput(name)
    return { dtype: info.dtype, shape: info.shape, layout: layoutOf(this.#parts.layouts, info.layout, info.shape.length) }
  }

  #stateOf(name: string, { tensor, layout }: StateParts): ModelState {
    const { core } = this.#parts
    const { dtype, shape, slice } = tensor
    return {
      dtype,
      shape,
      read: async (options = {}) => {
        this.#expectOpen(`states.${name}`)
        checkOptions('run', `${this.name}.states.${name}.read`, ['signal'], options)
        const { signal } = options
        signal?.throwIfAborted()
        // No declaration states the type of this result.
        return core.readTensor({ dtype, shape, layout }, slice, signal) as Promise<Tensor>
      },
      write: async (given) => {
        this.#expectOpen(`states.${name}`)
        const value = checkGiven(`${this.name}: ${name}`, 'run', given)
        if (value.dtype !== dtype || value.shape.join() !== shape.join()) {
          const found = `${value.dtype} [${value.shape.join(', ')}]`
          throw usageError('run.state', `${this.name}: state ${name}: expected ${dtype} [${shape.join(', ')}], got ${found}`)
        }
        const data = bytesIn(value, layout).slice()
        await core.run(() => slice.buffer.write(slice.offset, data))
      },
    }
  }
}

function missingOutput(name: string): never {
  throw new Error(`internal: output ${name} was not computed`)
}
