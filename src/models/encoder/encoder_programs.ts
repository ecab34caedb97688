/**
 * Programs of an encoder: one per requested result and (batch, seq) shape, captured if the device supports it, and cached while shapes
 * recur. Cases of a batch are padded, or packed if the plan uses packed rows.
 */
import type { FloatType } from '../../checkpoint/convert.js'
import { abortable } from '../../runtime/abortable.js'
import { encode } from '../../runtime/buffer.js'
import { packedRows } from '../../runtime/packed_rows.js'
import { buildProgram, type Program } from '../../runtime/program.js'
import type { Session } from '../../runtime/session.js'
import { releasingCache } from '../parts/lru_cache.js'
import { batchMask, type MaskedCase } from '../parts/masks.js'
import { type BatchShape, firstRows, idInputs, idRows } from '../parts/token_rows.js'
import { type Assembly, bertDims } from './bert.js'
import type { BertConfig } from './config.js'

/** Results by name, in the device's storage types. */
export type Outputs = Readonly<Record<string, Uint8Array>>

interface Ran {
  readonly outputs: Outputs
  readonly lengths: readonly number[]
  /** First row of each case in per-token results. */
  readonly first: readonly number[]
}

interface Programs {
  /** @param name of the assembly's result */
  of(assembly: Assembly, name: string, shape: BatchShape): Promise<Program>
  /** Runs a batch. @throws what the device rejects with; the signal's reason when it aborts */
  run(assembly: Assembly, name: string, batch: readonly MaskedCase[], signal: AbortSignal | undefined): Promise<Ran>
  release(): void
}

interface Environment {
  readonly config: BertConfig
  readonly dtype: FloatType
  readonly session: Session
  readonly seqStep: number
  readonly maxPrograms: number
  readonly captures: boolean
}

/** Makes the program cache of a session. */
export function encoderPrograms({ config, dtype, session, seqStep, maxPrograms, captures }: Environment): Programs {
  const programs = releasingCache<Program>(maxPrograms)
  const of: Programs['of'] = (assembly, name, shape) =>
    programs.get(`${name}${shape.batch}x${shape.seq}x${shape.tokens}`, async () => {
      const built = await buildProgram({
        session,
        ...assembly,
        dims: bertDims(config, shape),
        types: { T: dtype },
      })
      if (captures) await built.capture()
      return built
    })
  return {
    of,
    async run(assembly, name, batch, signal) {
      const sequences = batch.map(({ item }) => item.inputIds)
      const types = batch.map(({ item: { typeIds = [] } }) => typeIds)
      const lengths = sequences.map(({ length }) => length)
      const seq = Math.min(Math.ceil(Math.max(...lengths) / seqStep) * seqStep, config.positions)
      const tokens = packedRows(lengths, seq)
      const ready = await of(assembly, name, { batch: batch.length, seq, tokens })
      const rows = assembly.packed.inputs ? tokens : batch.length * seq
      const place = { seq, rows, packed: assembly.packed.inputs }
      // Rows without a token are masked by the lengths; they may hold any valid id.
      const inputs = {
        ...idInputs(sequences, { ...place, filler: Math.min(config.padToken, config.vocab - 1) }),
        typeIds: encode('i32', idRows(types, { ...place, filler: 0, lengths })),
        ...(assembly.inputs.includes('mask') ? { mask: batchMask(batch, seq) } : {}),
      }
      const outputs = await abortable(ready, signal, () => ready.run(inputs))
      return { outputs, lengths, first: firstRows(lengths, seq, assembly.packed.outputs) }
    },
    release: () => void programs.clear(),
  }
}
