/** A program on another machine as a program of this one. */
import type { NativeProgram, NativeSlice } from '../native.js'
import { transferBytes } from '../upload.js'
import { aligned, type BlobSender, refusal } from './blobs.js'
import type { Blobs, Link } from './link.js'
import { changesOf, type Ran, type Request, type SentOutput, type SentSlice } from './protocol.js'

interface ProgramParts {
  readonly sent: (slice: NativeSlice) => SentSlice
  readonly blobs: BlobSender
  readonly onRelease: () => void
}

/** Inputs of a run, in pieces that are each sent and stored on their own. */
const piecesOf = (inputs: Parameters<NativeProgram['run']>[0]): Parameters<NativeProgram['run']>[0] =>
  inputs.flatMap(({ to, data }) =>
    data.byteLength <= transferBytes || to.bytes !== data.byteLength
      ? [{ to, data }]
      : Array.from({ length: Math.ceil(data.byteLength / transferBytes) }, (_, i) => {
          const piece = data.subarray(i * transferBytes, (i + 1) * transferBytes)
          return { to: { ...to, offset: to.offset + i * transferBytes, bytes: piece.byteLength }, data: piece }
        }),
  )

/** Program of the number, which the other machine has made or refused. */
export function programOf(link: Link, program: number, steps: number, { sent, blobs, onRelease }: ProgramParts): NativeProgram {
  let state: Omit<Ran<unknown>, 'value'> = { captured: false, begun: 0, begunAhead: 0 }
  let isReleased = false
  const ask = async <T>(request: Request, named?: Blobs): Promise<T> => {
    if (isReleased) throw refusal('CLOSED', 'the program was released')
    const { value, ...after } = (await link.ask(request, named)) as Ran<T>
    state = after
    return value
  }
  return {
    steps,
    get captured() {
      return state.captured
    },
    get begun() {
      return state.begun
    },
    get begunAhead() {
      return state.begunAhead
    },
    async run(inputs, outputs, repeats) {
      const named = new Map<string, Uint8Array>()
      const given = piecesOf(inputs).map(({ to, data }) => ({ to: sent(to), data: blobs(data, named), before: data }))
      const wanted = outputs.map(sent)
      // Changes apply to the input as it was.
      const before = wanted.map(({ buffer, offset, bytes }) => {
        const input = given.find(({ to }) => to.buffer === buffer && to.offset === offset && to.bytes === bytes)
        return input === undefined ? undefined : new Uint8Array(input.before)
      })
      const request = {
        op: 'run',
        program,
        inputs: given.map(({ to, data }) => ({ to, data })),
        outputs: wanted,
        repeats,
      } as const
      const results = await ask<readonly SentOutput[]>(request, named)
      return results.map((result, i) =>
        result instanceof Uint8Array ? aligned(result) : changesOf(before[i] ?? new Uint8Array(), result.changes),
      )
    },
    async runAhead(outputs) {
      const results = await ask<readonly Uint8Array[]>({ op: 'runAhead', program, outputs: outputs.map(sent) })
      return results.map(aligned)
    },
    abort() {
      if (!isReleased) link.tell({ op: 'abort', program })
    },
    capture: () => ask({ op: 'capture', program }),
    time: (repeats, warmup) => ask({ op: 'time', program, repeats, warmup }),
    profile: (repeats) => ask({ op: 'profile', program, repeats }),
    release() {
      if (isReleased) return
      isReleased = true
      link.tell({ op: 'end', program })
      onRelease()
    },
  }
}
